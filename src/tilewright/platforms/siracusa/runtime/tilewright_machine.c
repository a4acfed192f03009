#include "tilewright_machine.h"
#include "tilewright_neureka.h"

#include "tilewright_udma.h"

#include <string.h>

#define L1_BITS 18
#define CHANNELS 256 /* more of them share places, and so wait for each other */
#define RELAYS 32
#define COUNTERS 16
#define LARGEST 0x1ffffu /* bytes of one command */

/* Bits of a command besides its length. */
#define TO_L1 (1u << 17)
#define INCREMENT (1u << 18)
#define LINES_IN_L2 (1u << 19)
#define EVENT (1u << 20)
#define LINES_IN_L1 (1u << 23)

/* Counters of the transfers on each channel, as bits. Only core 0 looks at this and all below. */
static uint32_t counters[CHANNELS];
static int counters_used;

/* The last transfer from or to L3 on each channel, 0 for none. */
static uint32_t far[CHANNELS];

/* Bytes for L1 that are on their way from L3 to L2, to the place in tw_relay that is theirs. */
static struct relay {
    int channel;
    uint32_t number, l1, bytes, rows, row;
} relays[RELAYS];
static int relays_used;
unsigned char *tw_relay;

static int in_l1(const void *address) { return (uintptr_t)address >> L1_BITS == 0x10000000u >> L1_BITS; }
static int in_l3(const void *address) { return (uintptr_t)address >= TW_L3; }
static uint32_t passed(uint32_t l1) { return (uint32_t)tw_relay + (l1 & ((1u << L1_BITS) - 1)); }

static void finish_near(int channel) {
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
        finish_near(other);
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

/* Sends what has come from L3 on to L1. */
static void finish_relays(int channel) {
    int left = 0;
    for (int i = 0; i < relays_used; i++) {
        const struct relay r = relays[i];
        if (r.channel == channel) {
            tw_udma_wait(r.number);
            plane(channel, r.l1, passed(r.l1), r.bytes, r.rows, r.row, r.row, TO_L1);
        } else {
            relays[left++] = r;
        }
    }
    relays_used = left;
}

static void finish(int channel) {
    if (relays_used)
        finish_relays(channel);
    finish_near(channel);
    if (far[channel])
        tw_udma_wait(far[channel]);
    far[channel] = 0;
}

static void from_l3(int channel, void *to, uint32_t l3, uint32_t bytes, uint32_t rows, uint32_t row, uint32_t l3_row) {
    const uint32_t address = (uint32_t)to;
    if (!in_l1(to)) {
        far[channel] = tw_udma_start(TW_TO_L2, address, l3, bytes, rows, row, l3_row);
        return;
    }
    if (relays_used == RELAYS)
        finish_relays(relays[0].channel);
    const uint32_t number = tw_udma_start(TW_TO_L2, passed(address), l3, bytes, rows, row, l3_row);
    relays[relays_used++] = (struct relay){channel, number, address, bytes, rows, row};
}

/* The way from L1 to L2 is short next to that to L3, so it is waited for. */
static void to_l3(int channel, uint32_t l3, const void *from, uint32_t bytes, uint32_t rows, uint32_t l3_row,
                  uint32_t row) {
    uint32_t l2 = (uint32_t)from;
    if (in_l1(from)) {
        l2 = passed(l2);
        plane(channel, (uint32_t)from, l2, bytes, rows, row, row, 0);
        finish_near(channel);
    }
    far[channel] = tw_udma_start(TW_TO_L3, l2, l3, bytes, rows, row, l3_row);
}

void tw_dma_start(int channel, void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row, ptrdiff_t from_row,
                  int planes, ptrdiff_t to_plane, ptrdiff_t from_plane) {
    if (tw_core() != 0)
        return;
    channel %= CHANNELS;
    unsigned char *target = to;
    const unsigned char *source = from;
    for (int p = 0; p < planes; p++, target += to_plane, source += from_plane) {
        if (in_l3(from)) {
            from_l3(channel, target, (uint32_t)source, bytes, (uint32_t)rows, (uint32_t)to_row, (uint32_t)from_row);
        } else if (in_l3(to)) {
            to_l3(channel, (uint32_t)target, source, bytes, (uint32_t)rows, (uint32_t)to_row, (uint32_t)from_row);
        } else if (in_l1(to) == in_l1(from)) { /* the DMA does not copy within a memory */
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
        finish(channel % CHANNELS);
}

void tw_await_neureka(void) {
    if (tw_core() != 0 || TW_REGISTER(TW_NEUREKA + 0x0C) == 0)
        return;
    TW_REGISTER(TW_EVENTS) = TW_NEUREKA_EVENT;
    while (TW_REGISTER(TW_NEUREKA + 0x0C) != 0)
        (void)tw_wait_for_event();
    TW_REGISTER(TW_EVENTS) = TW_BARRIER_EVENT;
}
