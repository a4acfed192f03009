#include "tilewright_machine.h"

#include <string.h>

#define L1_BITS 18
#define CHANNELS 64
#define COUNTERS 16
#define LARGEST 0x1ffffu /* bytes of one command */

/* Bits of a command besides its length. */
#define TO_L1 (1u << 17)
#define INCREMENT (1u << 18)
#define LINES_IN_L2 (1u << 19)
#define EVENT (1u << 20)
#define LINES_IN_L1 (1u << 23)

/* Counters of the transfers on each channel, as bits. Only core 0 looks at them. */
static uint32_t counters[CHANNELS];
static int counters_used;

static int in_l1(const void *address) { return (uintptr_t)address >> L1_BITS == 0x10000000u >> L1_BITS; }

static void finish(int channel) {
    const uint32_t mine = counters[channel];
    if (!mine)
        return;
    TW_REGISTER(TW_EVENTS) = TW_DMA_EVENT;
    while (TW_REGISTER(TW_DMA + 4) & mine)
        (void)tw_wait_for_event();
    TW_REGISTER(TW_EVENTS) = TW_BARRIER_EVENT;
    TW_REGISTER(TW_DMA + 4) = mine;
    counters_used -= __builtin_popcount(mine);
    counters[channel] = 0;
}

/* The DMA has 16 counters: when they run out, the transfers of the channel have to end first. */
static uint32_t allocated(int channel) {
    for (int other = channel; counters_used == COUNTERS; other = (other + 1) % CHANNELS)
        finish(other);
    const uint32_t counter = TW_REGISTER(TW_DMA);
    counters[channel] |= 1u << counter;
    counters_used++;
    return counter;
}

static void command(int channel, uint32_t l1, uint32_t l2, uint32_t bytes, uint32_t direction) {
    (void)allocated(channel);
    TW_REGISTER(TW_DMA) = bytes | direction | INCREMENT | EVENT;
    TW_REGISTER(TW_DMA) = l1;
    TW_REGISTER(TW_DMA) = l2;
}

static void command_lines(int channel, uint32_t l1, uint32_t l2, uint32_t bytes, uint32_t rows, uint32_t l1_row,
                          uint32_t l2_row, uint32_t direction) {
    (void)allocated(channel);
    TW_REGISTER(TW_DMA) = bytes * rows | direction | INCREMENT | EVENT | LINES_IN_L2 | LINES_IN_L1;
    TW_REGISTER(TW_DMA) = l1;
    TW_REGISTER(TW_DMA) = l2;
    TW_REGISTER(TW_DMA) = bytes;
    TW_REGISTER(TW_DMA) = l2_row;
    TW_REGISTER(TW_DMA) = bytes;
    TW_REGISTER(TW_DMA) = l1_row;
}

static void plane(int channel, uint32_t l1, uint32_t l2, uint32_t bytes, uint32_t rows, uint32_t l1_row,
                  uint32_t l2_row, uint32_t direction) {
    if (rows > 1 && l1_row == bytes && l2_row == bytes) {
        bytes *= rows;
        rows = 1;
    }
    if (rows > 1 && bytes * rows <= LARGEST) {
        command_lines(channel, l1, l2, bytes, rows, l1_row, l2_row, direction);
        return;
    }
    for (; rows > 0; rows--, l1 += l1_row, l2 += l2_row)
        for (uint32_t done = 0; done < bytes; done += LARGEST / 8 * 8) {
            const uint32_t left = bytes - done;
            command(channel, l1 + done, l2 + done, left < LARGEST ? left : LARGEST / 8 * 8, direction);
        }
}

/* memcpy for runs that are short and mostly whole words. */
static void copy(unsigned char *to, const unsigned char *from, size_t bytes) {
    if ((((uintptr_t)to | (uintptr_t)from | bytes) & 3) != 0) {
        memcpy(to, from, bytes);
        return;
    }
    uint32_t *words = (uint32_t *)(void *)to;
    const uint32_t *source = (const uint32_t *)(const void *)from;
#pragma GCC unroll 4
    for (size_t i = 0; i < bytes / 4; i++)
        words[i] = source[i];
}

void tw_dma_start(int channel, void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row, ptrdiff_t from_row,
                  int planes, ptrdiff_t to_plane, ptrdiff_t from_plane) {
    if (tw_core() != 0)
        return;
    unsigned char *target = to;
    const unsigned char *source = from;
    for (int p = 0; p < planes; p++, target += to_plane, source += from_plane) {
        if (in_l1(to) == in_l1(from)) { /* the DMA does not copy within a memory */
            for (int r = 0; r < rows; r++)
                copy(target + r * to_row, source + r * from_row, bytes);
        } else if (in_l1(to)) {
            plane(channel, (uint32_t)target, (uint32_t)source, bytes, (uint32_t)rows, (uint32_t)to_row,
                  (uint32_t)from_row, TO_L1);
        } else {
            plane(channel, (uint32_t)source, (uint32_t)target, bytes, (uint32_t)rows, (uint32_t)from_row,
                  (uint32_t)to_row, 0);
        }
    }
}

void tw_dma_wait(int channel) {
    if (tw_core() == 0)
        finish(channel);
}
