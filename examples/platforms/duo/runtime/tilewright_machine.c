#include "tilewright_machine.h"

#include <string.h>

/* Registers of the DMA. A command goes to the counter that was asked for last; there are 16. */
#define DMA 0x10201800u
#define STATUS (DMA + 4)
#define TO_L1 (1u << 17)
#define INCREMENT (1u << 18)
#define EVENT (1u << 20)
#define LINES (1u << 19 | 1u << 23) /* in L2, in L1 */
#define CHANNELS 16

static uint32_t counters[CHANNELS] TW_NEAR; /* those in use, as bits; in L1 */

static int in_l1(const void *address) { return (uintptr_t)address >> 16 == 0x1000; }

void tw_dma_wait(int channel) {
    uint32_t *const mine = &counters[channel % CHANNELS];
    while (TW_REGISTER(STATUS) & *mine)
        ;
    TW_REGISTER(STATUS) = *mine;
    *mine = 0;
}

static void command(unsigned char *to, const unsigned char *from, size_t bytes, int rows, ptrdiff_t to_row,
                    ptrdiff_t from_row) {
    const int loads = in_l1(to);
    TW_REGISTER(DMA) = ((uint32_t)bytes * (uint32_t)rows) | INCREMENT | EVENT | LINES | (loads ? TO_L1 : 0);
    TW_REGISTER(DMA) = loads ? (uint32_t)to : (uint32_t)from;
    TW_REGISTER(DMA) = loads ? (uint32_t)from : (uint32_t)to;
    TW_REGISTER(DMA) = (uint32_t)bytes; /* of a line in L2, and how far lines are apart */
    TW_REGISTER(DMA) = (uint32_t)(loads ? from_row : to_row);
    TW_REGISTER(DMA) = (uint32_t)bytes; /* the same in L1 */
    TW_REGISTER(DMA) = (uint32_t)(loads ? to_row : from_row);
}

/* The DMA does not copy within L1: the workers do, each some of the rows. */
static void copy_together(unsigned char *to, const unsigned char *from, size_t bytes, int rows, ptrdiff_t to_row,
                          ptrdiff_t from_row, int planes, ptrdiff_t to_plane, ptrdiff_t from_plane) {
    tw_meet();
    for (int plane = 0; plane < planes; plane++)
        for (int row = tw_worker(); row < rows; row += TW_WORKERS)
            memmove(to + plane * to_plane + row * to_row, from + plane * from_plane + row * from_row, bytes);
    tw_meet();
}

void tw_dma_start(int channel, void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row, ptrdiff_t from_row,
                  int planes, ptrdiff_t to_plane, ptrdiff_t from_plane) {
    if (in_l1(to) && in_l1(from)) {
        copy_together(to, from, bytes, rows, to_row, from_row, planes, to_plane, from_plane);
        return;
    }
    if (bytes == 0 || rows == 0 || planes == 0)
        return;
    tw_dma_wait(channel);
    counters[channel % CHANNELS] = 1u << TW_REGISTER(DMA);
    /* What fits L1 fits a command. */
    for (int plane = 0; plane < planes; plane++)
        command((unsigned char *)to + plane * to_plane, (const unsigned char *)from + plane * from_plane, bytes, rows,
                to_row, from_row);
}
