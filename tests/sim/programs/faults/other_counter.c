/* Two transfers, of which one is waited for. The status that is read for it shows that both have ended. */
#include "chip.h"

#define SIZE 64
IN_L2 static volatile uint8_t source[SIZE];
IN_L1 static volatile uint8_t first[SIZE], second[SIZE];

void program(uint32_t core) {
    if (core != 0)
        return;
    for (uint32_t i = 0; i < SIZE; i++)
        source[i] = 1;
    uint32_t one = dma(first, source, SIZE, to_l1), other = dma(second, source, SIZE, to_l1);
    idle(1000);
    dma_wait(other);
    if (!FAULTY)
        dma_wait(one);
    result = second[8];
    result += first[8]; /* FAULT */
    if (FAULTY)
        dma_wait(one);
}
