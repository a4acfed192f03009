/* One core starts a transfer, another one overwrites what it reads. */
#include "chip.h"

#define SIZE 4096
IN_L2 static volatile uint8_t target[SIZE];
IN_L1 static volatile uint8_t buffer[SIZE];

void program(uint32_t core) {
    uint32_t id = 0;
    if (core == 0) {
        for (uint32_t i = 0; i < SIZE; i++)
            buffer[i] = 1;
        id = dma(buffer, target, SIZE, to_l2);
        if (!FAULTY)
            dma_wait(id);
    }
    set_mask(BARRIER_EVENT);
    barrier();
    if (core == 1)
        buffer[SIZE - 1] = 2; /* FAULT */
    barrier();
    set_mask(BARRIER_EVENT | DMA_EVENT);
    if (core == 0 && FAULTY)
        dma_wait(id);
    if (core == 0)
        result = target[0];
}
