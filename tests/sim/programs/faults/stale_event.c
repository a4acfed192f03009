/* Waits for an event of the DMA, but the one of an earlier transfer is still there. */
#include "chip.h"

#define SIZE 4096
IN_L2 static volatile uint8_t source[SIZE];
IN_L1 static volatile uint8_t small[64], buffer[SIZE];

void program(uint32_t core) {
    if (core != 0)
        return;
    for (uint32_t i = 0; i < SIZE; i++)
        source[i] = 1;
    uint32_t id = dma(small, source, sizeof small, to_l1);
    while (dma_runs(id))
        ;
    dma_free(id);
    if (!FAULTY)
        REGISTER(EVENTS + 0x28) = DMA_EVENT;
    id = dma(buffer, source, SIZE, to_l1);
    (void)wait_for_event();
    result = buffer[SIZE - 1]; /* FAULT */
    dma_wait(id);
}
