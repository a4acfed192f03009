/* Reads a buffer long after the DMA has filled it, without having looked whether it has. */
#include "chip.h"

#define SIZE 64
IN_L2 static volatile uint8_t source[SIZE];
IN_L1 static volatile uint8_t buffer[SIZE];

void program(uint32_t core) {
    if (core != 0)
        return;
    for (uint32_t i = 0; i < SIZE; i++)
        source[i] = 1;
    uint32_t id = dma(buffer, source, SIZE, to_l1);
    idle(1000);
    if (!FAULTY)
        dma_wait(id);
    result = buffer[8]; /* FAULT */
    if (FAULTY)
        dma_wait(id);
}
