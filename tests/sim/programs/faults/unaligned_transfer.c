/* A transfer from an odd address: slow. */
#include "chip.h"

#define SIZE 64
IN_L2 static volatile uint8_t source[SIZE + 4];
IN_L1 static volatile uint8_t buffer[SIZE];

void program(uint32_t core) {
    if (core != 0)
        return;
    for (uint32_t i = 0; i < SIZE + 4; i++)
        source[i] = 1;
    dma_wait(dma(buffer, source + FAULTY, SIZE, to_l1));
    result = buffer[8];
}
