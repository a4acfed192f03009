/* The DMA between the HyperRAM and L2. Core 0 asks for transfers, which are done one after the other. */
#ifndef TILEWRIGHT_UDMA_H
#define TILEWRIGHT_UDMA_H

#include <stdint.h>

enum tw_direction { TW_TO_L2, TW_TO_L3 };

/* Starts copying rows of `bytes`; strides are in bytes. Returns a number to wait with, never 0. */
uint32_t tw_udma_start(enum tw_direction direction, uint32_t l2, uint32_t l3, uint32_t bytes, uint32_t rows,
                       uint32_t l2_row, uint32_t l3_row);

/* Returns when the transfer of this number, and all before it, are complete. */
void tw_udma_wait(uint32_t number);

#endif
