#include "tilewright_udma.h"

#include "tilewright_machine.h"

#define REQUESTS 16u     /* that the fabric controller has not begun yet */
#define BEGUN 16u        /* and those that it has: more than the DMA takes at once */
#define QUEUE 8u         /* transfers that wait in the DMA */
#define LARGEST 0xffff0u /* bytes of one of them: its size has 20 bits */

/* Registers of the first of two channels. */
#define CHANNEL (TW_UDMA + 0x280)
#define INSIDE(to_l3) (CHANNEL + ((to_l3) ? 0x0Cu : 0x00u)) /* address, size, start */
#define COMMAND (CHANNEL + 0x18)
#define OUTSIDE (CHANNEL + 0x1C)
#define STATUS (CHANNEL + 0x24)
#define ROWS_OUTSIDE (CHANNEL + 0x28) /* on, bytes of a row, from row to row */
#define ROWS_INSIDE (CHANNEL + 0x34)
#define LINEAR_READ 5u
#define LINEAR_WRITE 1u
#define START_WORDS 0x14u

/* Few instructions: each line of them comes from L2 before it is run. */
#define SMALL __attribute__((cold, noinline))

/* Between the driver, which counts what it asks for, and the fabric controller, which counts what it begins and completes. */
static volatile struct {
    uint32_t asked, begun, complete;
    struct tw_request requests[REQUESTS];
} shared TW_NEAR;

/* The cluster's side */

SMALL volatile struct tw_request *tw_udma_next(void) {
    while (shared.asked - shared.begun >= REQUESTS)
        ;
    return &shared.requests[shared.asked % REQUESTS];
}

SMALL uint32_t tw_udma_ask(void) { return ++shared.asked; }

SMALL void tw_udma_wait(uint32_t number) {
    while (((number - shared.complete) & 0x7fff) - 1 < 0x3fff)
        ;
}

/* The fabric controller's side */

static uint32_t transfers; /* that were started, in all */

static uint32_t unfinished(void) {
    const uint32_t status = TW_REGISTER(STATUS);
    return (status >> 1 & 0xff) + (status & 1);
}

static void transfer(uint32_t to_l3, uint32_t l2, uint32_t l3, uint32_t bytes) {
    while (unfinished() >= QUEUE)
        ;
    const uint32_t inside = INSIDE(to_l3);
    TW_REGISTER(inside) = l2;
    TW_REGISTER(inside + 4) = bytes;
    TW_REGISTER(COMMAND) = to_l3 ? LINEAR_WRITE : LINEAR_READ;
    TW_REGISTER(OUTSIDE) = l3 - TW_L3;
    TW_REGISTER(inside + 8) = START_WORDS;
    transfers++;
}

/* What is dense needs no rows. */
static void shape(uint32_t registers, uint32_t bytes, uint32_t row) {
    TW_REGISTER(registers) = row != bytes;
    TW_REGISTER(registers + 4) = bytes;
    TW_REGISTER(registers + 8) = row;
}

static void begin(struct tw_request r) {
    static int by_rows;
    if (r.rows == 1 || (r.l2_row == r.bytes && r.l3_row == r.bytes)) {
        r.bytes *= r.rows;
        r.rows = 1;
    }
    if (r.rows > 1 || by_rows) {
        shape(ROWS_OUTSIDE, r.bytes, r.rows > 1 ? r.l3_row : r.bytes);
        shape(ROWS_INSIDE, r.bytes, r.rows > 1 ? r.l2_row : r.bytes);
        by_rows = r.rows > 1;
    }
    for (uint32_t plane = 0; plane < r.planes; plane++) {
        uint32_t l2 = r.l2 + plane * r.l2_plane, l3 = r.l3 + plane * r.l3_plane, rows = r.rows;
        for (; rows > 1 && r.bytes * rows > LARGEST; rows--, l2 += r.l2_row, l3 += r.l3_row)
            transfer(r.to_l3, l2, l3, r.bytes);
        uint32_t left = r.bytes * rows;
        for (; left > LARGEST; left -= LARGEST, l2 += LARGEST, l3 += LARGEST)
            transfer(r.to_l3, l2, l3, LARGEST);
        transfer(r.to_l3, l2, l3, left);
    }
}

void tw_udma_serve(void) {
    static uint32_t begun, complete, ends[BEGUN];
    if (begun - complete < BEGUN && begun != shared.asked) {
        begin(shared.requests[begun % REQUESTS]);
        ends[begun % BEGUN] = transfers;
        shared.begun = ++begun;
    }
    if (complete == begun)
        return;
    const uint32_t before = complete, done = transfers - unfinished();
    while (complete != begun && (int32_t)(done - ends[complete % BEGUN]) >= 0)
        complete++;
    if (complete != before)
        shared.complete = complete;
}
