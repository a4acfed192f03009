/* Reuses a buffer for the next tile before the last one has left it. */
#include "chip.h"

#define SIZE 2048
IN_L2 static volatile uint8_t tiles[2 * SIZE];
IN_L1 static volatile uint8_t buffer[SIZE];

void program(uint32_t core) {
    if (core != 0)
        return;
    for (uint32_t i = 0; i < SIZE; i++)
        tiles[SIZE + i] = buffer[i] = 1;
    uint32_t out = dma(buffer, tiles, SIZE, to_l2);
    if (!FAULTY)
        dma_wait(out);
    uint32_t in = dma(buffer, tiles + SIZE, SIZE, to_l1);
    if (FAULTY)
        dma_wait(out);
    dma_wait(in);
    result = buffer[0];
}
