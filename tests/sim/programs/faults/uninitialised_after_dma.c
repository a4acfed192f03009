/* Bytes that were never written are copied by the DMA, which is no mistake, and then used, which is one. */
#include "chip.h"

#define SIZE 64
IN_L2 static volatile uint8_t source[SIZE];
IN_L1 static volatile uint8_t buffer[SIZE];

void program(uint32_t core) {
    if (core != 0)
        return;
    for (uint32_t i = 0; i < SIZE / 2; i++)
        source[i] = 1;
    dma_wait(dma(buffer, source, SIZE, to_l1));
    result = 0;
    for (uint32_t i = 0; i < (FAULTY ? SIZE : SIZE / 2); i++)
        result += buffer[i]; /* FAULT */
}
