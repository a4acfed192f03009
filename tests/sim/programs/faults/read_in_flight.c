/* Reads a buffer while the DMA fills it. */
#include "chip.h"

#define SIZE 4096
IN_L2 static volatile uint8_t source[SIZE];
IN_L1 static volatile uint8_t buffer[SIZE];

void program(uint32_t core) {
    if (core != 0)
        return;
    for (uint32_t i = 0; i < SIZE; i++)
        source[i] = buffer[i] = (uint8_t)i;
    uint32_t id = dma(buffer, source, SIZE, to_l1);
    if (!FAULTY)
        dma_wait(id);
    result = buffer[SIZE - 4]; /* FAULT */
    if (FAULTY)
        dma_wait(id);
}
