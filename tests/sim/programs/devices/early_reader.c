/* Who reads before the end of a transfer or job finds what was there before. */
#include "devices.h"

IN_L1 volatile uint32_t near[1024];
IN_L2 volatile uint32_t far[1024];

void program(uint32_t core) {
    if (core != 0)
        return;
    for (uint32_t i = 0; i < 1024; i++) {
        near[i] = 0;
        far[i] = i + 1;
    }
    uint32_t id = dma(near, far, 4096, to_l1);
    idle(60); /* about 100 words are there */
    results[0] = near[0];
    results[1] = near[1023];
    dma_wait(id);
    results[2] = near[1023];
}
