/* The program ends, and nobody has waited for its result. */
#include "chip.h"

#define SIZE 64
IN_L2 static volatile uint8_t target[SIZE];
IN_L1 static volatile uint8_t buffer[SIZE];

void program(uint32_t core) {
    if (core != 0)
        return;
    for (uint32_t i = 0; i < SIZE; i++)
        buffer[i] = 1;
    uint32_t id = dma(buffer, target, SIZE, to_l2);
    if (!FAULTY)
        dma_wait(id);
}
