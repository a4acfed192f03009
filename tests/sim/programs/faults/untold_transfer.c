/* One core waits for a transfer, another one uses its bytes without having been told. */
#include "chip.h"

#define SIZE 64
IN_L2 static volatile uint8_t source[SIZE];
IN_L1 static volatile uint8_t buffer[SIZE];

void program(uint32_t core) {
    if (core == 0) {
        for (uint32_t i = 0; i < SIZE; i++)
            source[i] = 1;
        dma_wait(dma(buffer, source, SIZE, to_l1));
    } else {
        idle(3000);
    }
    set_mask(BARRIER_EVENT);
    if (!FAULTY)
        barrier();
    if (core == 1)
        result = buffer[8]; /* FAULT */
    barrier();
}
