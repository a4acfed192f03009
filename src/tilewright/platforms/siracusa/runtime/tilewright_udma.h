/* The DMA between the HyperRAM and L2. Its registers are far from the cluster and near the fabric controller, which
 * drives it: the driver of the cluster leaves requests in L1 and goes on. They are done one after the other. */
#ifndef TILEWRIGHT_UDMA_H
#define TILEWRIGHT_UDMA_H

#include <stdint.h>

/* A copy of planes x rows runs of `bytes`; strides are in bytes. */
struct tw_request {
    uint32_t to_l3, l2, l3, bytes, rows, l2_row, l3_row, planes, l2_plane, l3_plane;
};

/* The driver: where the next request goes, once there is room for it, and then that it is there. A copy must not be empty.
 * Returns a number to wait with, of which the low 15 bits are enough. */
volatile struct tw_request *tw_udma_next(void);
uint32_t tw_udma_ask(void);

/* The driver: returns when the copy of this number, and all before it, are complete. */
void tw_udma_wait(uint32_t number);

/* The fabric controller: begins a copy that was asked for, and tells of those that are complete. */
void tw_udma_serve(void);

#endif
