#include "tilewright_machine.h"
#include "tilewright_core.h"
#include "tilewright_neureka.h"

#include "tilewright_udma.h"

#define L1_BITS 18
#define CHANNELS 128 /* a power of two; more of them share places, and so wait for each other */
#define RELAYS 8
#define COUNTERS 16
#define ALL_COUNTERS ((1u << COUNTERS) - 1)
#define LARGEST 0x1ffffu /* bytes of one command */

/* Bits of a command besides its length. */
#define TO_L1 (1u << 17)
#define INCREMENT (1u << 18)
#define LINES_IN_L2 (1u << 19)
#define EVENT (1u << 20)
#define LINES_IN_L1 (1u << 23)

/* Few instructions: each line of them comes from L2 before it is run. */
#define SMALL __attribute__((cold, noinline))

/* What the driver asks at every transfer; in L1, because L2 is 15 cycles away. */
static struct {
    uint32_t busy;               /* counters of the DMA, as bits */
    uint32_t latest;             /* that of the last command, as a bit */
    int far;                     /* whether there have been copies between L3 and L2 */
    uint16_t counters[CHANNELS]; /* those of the transfers on each channel */
    uint8_t channels[COUNTERS];  /* that of each counter in use */
    uint16_t last[CHANNELS]; /* the last copy between L3 and L2 on each channel, with a bit that says there is one */
    int relays;              /* in use */
    /* Bytes for L1 that are on their way from L3 to L2, to the place in tw_relay that is theirs. */
    struct relay {
        int channel;
        uint32_t number, l1, bytes, rows, row, planes, plane;
    } relay[RELAYS];
} near TW_NEAR;
#define ONE_IS_LAST 0x8000u
int tw_team TW_NEAR;
unsigned char *tw_relay;

static int in_l1(const void *address) { return (uintptr_t)address >> L1_BITS == 0x10000000u >> L1_BITS; }
static int in_l3(const void *address) { return (uintptr_t)address >= TW_L3; }
static uint32_t passed(uint32_t l1) { return (uint32_t)tw_relay + (l1 & ((1u << L1_BITS) - 1)); }

static inline void finish_near(int channel) {
    const uint32_t mine = near.counters[channel];
    if (!mine)
        return;
    if (TW_REGISTER(TW_DMA + 4) & mine) {
        TW_REGISTER(TW_EVENTS) = TW_DMA_EVENT;
        do
            (void)tw_wait_for_event();
        while (TW_REGISTER(TW_DMA + 4) & mine);
        TW_REGISTER(TW_EVENTS) = TW_BARRIER_EVENT;
    }
    TW_REGISTER(TW_DMA + 4) = mine;
    near.busy ^= mine;
    near.counters[channel] = 0;
}

/* Waits until some transfers have ended, whichever, and gives their counters back. */
SMALL static void finish_some(void) {
    TW_REGISTER(TW_EVENTS) = TW_DMA_EVENT;
    uint32_t ended;
    while (!(ended = ~TW_REGISTER(TW_DMA + 4) & ALL_COUNTERS))
        (void)tw_wait_for_event();
    TW_REGISTER(TW_EVENTS) = TW_BARRIER_EVENT;
    for (int i = 0; i < COUNTERS; i++)
        near.counters[near.channels[i]] = (uint16_t)(near.counters[near.channels[i]] & ~(ended & 1u << i));
    TW_REGISTER(TW_DMA + 4) = ended;
    near.busy &= ~ended;
}

/* Reading this register gives the next commands a counter, of which one has to be free. Commands of a channel that follow
 * each other share one, which is no new one: -1. */
static inline int counter(int channel) { return near.counters[channel] & near.latest ? -1 : (int)TW_REGISTER(TW_DMA); }
static inline void note(int channel, int number) {
    if (number < 0)
        return;
    near.latest = 1u << number;
    near.busy |= near.latest;
    near.channels[number] = (uint8_t)channel;
    near.counters[channel] = (uint16_t)(near.counters[channel] | near.latest);
}

static inline void allocate(int channel) {
    if (near.busy == ALL_COUNTERS)
        finish_some();
    note(channel, counter(channel));
}

static inline void give(uint32_t first, uint32_t l1, uint32_t l2) {
    TW_REGISTER(TW_DMA) = first | INCREMENT | EVENT;
    TW_REGISTER(TW_DMA) = l1;
    TW_REGISTER(TW_DMA) = l2;
}

static inline void give_lines(uint32_t bytes, uint32_t row) {
    TW_REGISTER(TW_DMA) = bytes;
    TW_REGISTER(TW_DMA) = row;
}

static inline void command(int channel, uint32_t l1, uint32_t l2, uint32_t bytes, uint32_t direction) {
    allocate(channel);
    give(bytes | direction, l1, l2);
}

static inline void give_rows(uint32_t l1, uint32_t l2, uint32_t bytes, uint32_t rows, uint32_t l1_row, uint32_t l2_row,
                             uint32_t direction) {
#ifdef TW_GVSOC /* whose DMA has no lines in L1; commands may share a counter */
    if (l1_row == bytes) {
        give(bytes * rows | direction | LINES_IN_L2, l1, l2);
        give_lines(bytes, l2_row);
    } else {
        for (; rows > 0; rows--, l1 += l1_row, l2 += l2_row)
            give(bytes | direction, l1, l2);
    }
#else
    give(bytes * rows | direction | LINES_IN_L2 | LINES_IN_L1, l1, l2);
    give_lines(bytes, l2_row);
    give_lines(bytes, l1_row);
#endif
}

static void plane(int channel, uint32_t l1, uint32_t l2, uint32_t bytes, uint32_t rows, uint32_t l1_row,
                  uint32_t l2_row, uint32_t direction) {
    if (rows > 1 && l1_row == bytes && l2_row == bytes) {
        bytes *= rows;
        rows = 1;
    }
    if (rows > 1 && bytes * rows <= LARGEST) {
        allocate(channel);
        give_rows(l1, l2, bytes, rows, l1_row, l2_row, direction);
        return;
    }
    for (; rows > 0; rows--, l1 += l1_row, l2 += l2_row)
        for (uint32_t done = 0; done < bytes; done += LARGEST / 8 * 8) {
            const uint32_t left = bytes - done;
            command(channel, l1 + done, l2 + done, left < LARGEST ? left : LARGEST / 8 * 8, direction);
        }
}

/* Copies words, at any address, and what is left of the last one. */
static inline void copy(unsigned char *to, const unsigned char *from, size_t bytes) {
    if (bytes >= 8)
        __asm__ volatile(".option push\n.option norvc\n.insn i 0x7B, 4, x0, %[pairs], 8\n"
                         ".insn i 0x0B, 2, t0, 4(%[from])\n.insn i 0x0B, 2, t1, 4(%[from])\n"
                         ".insn s 0x2B, 2, t0, 4(%[to])\n.insn s 0x2B, 2, t1, 4(%[to])\n.option pop\n"
                         : [to] "+r"(to), [from] "+r"(from)
                         : [pairs] "r"(bytes >> 3)
                         : "t0", "t1", "memory");
    for (size_t i = 0; i < (bytes & 7); i++)
        to[i] = from[i];
}

/* The library copies byte by byte, 9 cycles each. */
void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
    copy(to, from, bytes);
    return to;
}

/* Lines that a tile keeps go to lower addresses: what is overwritten has been read by then. */
void *memmove(void *to, const void *from, size_t bytes) {
    unsigned char *const target = to;
    const unsigned char *const source = from;
    if ((uintptr_t)target <= (uintptr_t)source)
        copy(target, source, bytes);
    else
        for (size_t left = bytes; left > 0; left--)
            target[left - 1] = source[left - 1];
    return to;
}

struct copies {
    unsigned char *to;
    const unsigned char *from;
    size_t bytes;
    int rows;
    ptrdiff_t to_row, from_row;
    int planes;
    ptrdiff_t to_plane, from_plane;
};

/* The DMA does not copy within L1: the cores do, each its share of rows, or of a row where there are few. */
static void copy_together(const struct copies *c) {
    const int core = tw_core(), runs = c->rows * c->planes;
    tw_barrier();
    if (core < tw_team && runs >= tw_team) {
        const int share = (runs + tw_team - 1) / tw_team, first = core * share;
        const int end = first + share < runs ? first + share : runs;
        int plane = c->planes > 1 ? first / c->rows : 0, row = first - plane * c->rows;
        for (int run = first; run < end; run++) {
            copy(c->to + plane * c->to_plane + row * c->to_row, c->from + plane * c->from_plane + row * c->from_row,
                 c->bytes);
            if (++row == c->rows) {
                row = 0;
                plane++;
            }
        }
    } else if (core < tw_team) {
        const size_t team = (size_t)tw_team, part = ((c->bytes + team - 1) / team + 7) & ~(size_t)7;
        const size_t first = (size_t)core * part;
        const size_t bytes = first >= c->bytes ? 0 : c->bytes - first < part ? c->bytes - first : part;
        for (int plane = 0; plane < c->planes && bytes; plane++)
            for (int row = 0; row < c->rows; row++)
                copy(c->to + plane * c->to_plane + row * c->to_row + first,
                     c->from + plane * c->from_plane + row * c->from_row + first, bytes);
    }
    tw_barrier();
}

/* Sends what has come from L3 on to L1. */
SMALL static void finish_relays(int channel) {
    int left = 0;
    for (int i = 0; i < near.relays; i++) {
        const struct relay *const r = &near.relay[i];
        if (r->channel == channel) {
            tw_udma_wait(r->number);
            for (uint32_t p = 0, l1 = r->l1; p < r->planes; p++, l1 += r->plane)
                plane(channel, l1, passed(l1), r->bytes, r->rows, r->row, r->row, TO_L1);
        } else {
            if (left < i)
                near.relay[left] = *r;
            left++;
        }
    }
    near.relays = left;
}

SMALL static void finish(int channel) {
    if (near.relays)
        finish_relays(channel);
    finish_near(channel);
    if (near.last[channel]) {
        tw_udma_wait(near.last[channel]);
        near.last[channel] = 0;
    }
}

/* A copy from or to L3; its other side is in L2 or L1. */
SMALL static void start_far(int channel, int to_l3, uint32_t side, uint32_t l3, uint32_t bytes, uint32_t rows,
                            uint32_t row, uint32_t l3_row, uint32_t planes, uint32_t side_plane, uint32_t l3_plane) {
    const int passes = in_l1((const void *)side);
    if (passes && to_l3) {
        /* This way is short next to that to L3, so it is waited for. */
        for (uint32_t p = 0, l1 = side; p < planes; p++, l1 += side_plane)
            plane(channel, l1, passed(l1), bytes, rows, row, row, 0);
        finish_near(channel);
    } else if (passes && near.relays == RELAYS) {
        finish_relays(near.relay[0].channel);
    }
    volatile struct tw_request *const r = tw_udma_next();
    r->to_l3 = (uint32_t)to_l3;
    r->l2 = passes ? passed(side) : side;
    r->l3 = l3;
    r->bytes = bytes;
    r->rows = rows;
    r->l2_row = row;
    r->l3_row = l3_row;
    r->planes = planes;
    r->l2_plane = side_plane;
    r->l3_plane = l3_plane;
    const uint32_t number = tw_udma_ask();
    near.far = 1;
    if (passes && !to_l3) {
        struct relay *const relay = &near.relay[near.relays++];
        relay->channel = channel;
        relay->number = number;
        relay->l1 = side;
        relay->bytes = bytes;
        relay->rows = rows;
        relay->row = row;
        relay->planes = planes;
        relay->plane = side_plane;
    } else {
        near.last[channel] = (uint16_t)(number | ONE_IS_LAST);
    }
}

/* One run of bytes from L3 to L2. */
SMALL static void copy_ahead(int channel, uint32_t l2, uint32_t l3, uint32_t bytes) {
    volatile struct tw_request *const r = tw_udma_next();
    r->to_l3 = 0;
    r->l2 = l2;
    r->l3 = l3;
    r->bytes = bytes;
    r->rows = r->planes = 1;
    near.far = 1;
    near.last[channel] = (uint16_t)(tw_udma_ask() | ONE_IS_LAST);
}

void tw_dma_planes(int channel, void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row,
                   ptrdiff_t from_row, int planes, ptrdiff_t to_plane, ptrdiff_t from_plane) {
    if (in_l1(to) && in_l1(from)) {
        copy_together(&(struct copies){to, from, bytes, rows, to_row, from_row, planes, to_plane, from_plane});
        return;
    }
    if (bytes == 0 || rows == 0) /* parts of a tensor may be empty */
        return;
    channel &= CHANNELS - 1;
    if (in_l3(from)) {
        start_far(channel, 0, (uint32_t)to, (uint32_t)from, bytes, (uint32_t)rows, (uint32_t)to_row, (uint32_t)from_row,
                  (uint32_t)planes, (uint32_t)to_plane, (uint32_t)from_plane);
        return;
    }
    if (in_l3(to)) {
        start_far(channel, 1, (uint32_t)from, (uint32_t)to, bytes, (uint32_t)rows, (uint32_t)from_row, (uint32_t)to_row,
                  (uint32_t)planes, (uint32_t)from_plane, (uint32_t)to_plane);
        return;
    }
    unsigned char *target = to;
    const unsigned char *source = from;
    for (int p = 0; p < planes; p++, target += to_plane, source += from_plane) {
        if (in_l1(to)) {
            plane(channel, (uint32_t)target, (uint32_t)source, bytes, (uint32_t)rows, (uint32_t)to_row,
                  (uint32_t)from_row, TO_L1);
        } else {
            plane(channel, (uint32_t)source, (uint32_t)target, bytes, (uint32_t)rows, (uint32_t)from_row,
                  (uint32_t)to_row, 0);
        }
    }
}

/* Whether one short command does it. L2 and L1 differ in these bits of their addresses, and no other two memories do. */
static inline int at_once(const void *to, const void *from, size_t bytes) {
    return ((uintptr_t)to ^ (uintptr_t)from) >> 22 == (0x1C000000u ^ 0x10000000u) >> 22 && (bytes - 1) >> 16 == 0;
}

/* Starts and waits are mostly the first of their kind: what is usual is straight code of few lines, without a frame. What
 * is not is called last, so that no register has to be kept for it. L1 has lower addresses than L2. */
static inline uint32_t l1_of(const void *to, const void *from) { return (uint32_t)tw_min((int)to, (int)from); }
static inline uint32_t l2_of(const void *to, const void *from) { return (uint32_t)tw_max((int)to, (int)from); }
static inline uint32_t direction_of(const void *to, const void *from) { return (to < from) * TO_L1; }

SMALL static void run_unusual(int channel, void *to, const void *from, size_t bytes) {
    if (at_once(to, from, bytes)) {
        finish_some();
        tw_dma_run(channel, to, from, bytes);
    } else if (bytes && in_l3(from) && !in_l1(to)) {
        copy_ahead(channel & (CHANNELS - 1), (uint32_t)to, (uint32_t)from, bytes);
    } else {
        tw_dma_planes(channel, to, from, bytes, 1, 0, 0, 1, 0, 0);
    }
}

void tw_dma_run(int channel, void *to, const void *from, size_t bytes) {
    if (!at_once(to, from, bytes) || near.busy == ALL_COUNTERS) {
        run_unusual(channel, to, from, bytes);
        return;
    }
    const int number = counter(channel & (CHANNELS - 1));
    give(bytes | direction_of(to, from), l1_of(to, from), l2_of(to, from));
    note(channel & (CHANNELS - 1), number);
}

SMALL static void rows_unusual(int channel, void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row,
                               ptrdiff_t from_row) {
    if (rows > 1 && at_once(to, from, bytes * (size_t)rows)) {
        finish_some();
        tw_dma_rows(channel, to, from, bytes, rows, to_row, from_row);
    } else {
        tw_dma_planes(channel, to, from, bytes, rows, to_row, from_row, 1, 0, 0);
    }
}

void tw_dma_rows(int channel, void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row,
                 ptrdiff_t from_row) {
    if (rows < 2 || !at_once(to, from, bytes * (size_t)rows) || near.busy == ALL_COUNTERS) {
        rows_unusual(channel, to, from, bytes, rows, to_row, from_row);
        return;
    }
    const int load = to < from;
    const int number = counter(channel & (CHANNELS - 1));
    give_rows(l1_of(to, from), l2_of(to, from), bytes, (uint32_t)rows, (uint32_t)(load ? to_row : from_row),
              (uint32_t)(load ? from_row : to_row), direction_of(to, from));
    note(channel & (CHANNELS - 1), number);
}

void tw_dma_wait(int channel) {
    channel &= CHANNELS - 1;
    if (near.far)
        finish(channel);
    else
        finish_near(channel);
}

TW_NEAR uint32_t tw_neureka_jobs;
static TW_NEAR uint32_t neureka_awaited; /* how many there were when jobs were last waited for */
static TW_NEAR uint32_t neureka_ended;   /* how many of the first are known to have ended */

/* Whether one of the first jobs is on its way: they have numbers from 0 on. */
static inline int neureka_has(uint32_t jobs) {
    return TW_REGISTER(TW_NEUREKA + 0x0C) != 0 && (int32_t)(jobs - TW_REGISTER(TW_NEUREKA + 0x10)) > 0;
}

void tw_await_neureka(int recent) {
    const uint32_t jobs = recent ? tw_neureka_jobs : neureka_awaited;
    neureka_awaited = tw_neureka_jobs;
    /* No register is read for what is known: it would show later jobs, too, that nobody has asked for. */
    if (jobs == neureka_ended)
        return;
    neureka_ended = jobs;
    if (!neureka_has(jobs))
        return;
    TW_REGISTER(TW_EVENTS) = TW_NEUREKA_EVENT;
    while (neureka_has(jobs))
        (void)tw_wait_for_event();
    TW_REGISTER(TW_EVENTS) = TW_BARRIER_EVENT;
}
