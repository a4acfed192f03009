/* A transfer takes bytes away that another core has written, without having been told so. */
#include "chip.h"

#define SIZE 64
IN_L2 static volatile uint8_t target[SIZE];
IN_L1 static volatile uint8_t buffer[SIZE];

void program(uint32_t core) {
    if (core == 1)
        for (uint32_t i = 0; i < SIZE; i++)
            buffer[i] = 1; /* OTHER */
    else
        idle(3000);
    set_mask(BARRIER_EVENT);
    if (!FAULTY)
        barrier();
    set_mask(DMA_EVENT);
    if (core == 0) {
        dma_wait(dma(buffer, target, SIZE, to_l2));
        result = target[8];
    }
}
