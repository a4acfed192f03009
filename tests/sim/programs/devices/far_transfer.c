/* One transfer each way, timed. */
#include "devices.h"

IN_L1 uint8_t near[512];
IN_L2 uint8_t far[512];

void program(uint32_t core) {
    enable_caches();
    if (core != 0)
        return;
    for (uint32_t i = 0; i < sizeof far; i++)
        far[i] = (uint8_t)(i * 7);
    for (int warm = 0; warm < 3; warm++) {
        uint32_t since = cycles();
        dma_wait(dma(near, far, sizeof far, to_l1));
        results[0] = cycles() - since;
        since = cycles();
        dma_wait(dma(near, far, sizeof far, to_l2));
        results[1] = cycles() - since;
    }
}
