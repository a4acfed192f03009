#include "tilewright_udma.h"

#include "tilewright_chip.h"

#define QUEUE 8u         /* transfers that wait for their turn */
#define LARGEST 0xffff0u /* bytes of one of them: its size has 20 bits */

/* Registers of the first of two channels. */
#define CHANNEL (TW_UDMA + 0x280)
#define INSIDE(direction) (CHANNEL + ((direction) == TW_TO_L2 ? 0x00u : 0x0Cu)) /* address, size, start */
#define COMMAND (CHANNEL + 0x18)
#define OUTSIDE (CHANNEL + 0x1C)
#define STATUS (CHANNEL + 0x24)
#define ROWS_OUTSIDE (CHANNEL + 0x28) /* on, bytes of a row, from row to row */
#define ROWS_INSIDE (CHANNEL + 0x34)
#define LINEAR_READ 5u
#define LINEAR_WRITE 1u
#define START_WORDS 0x14u

/* How many transfers were asked for, and how many of them are known to be complete. */
static uint32_t asked = 1, complete = 1;
static int by_rows;

static void look(void) {
    const uint32_t status = TW_REGISTER(STATUS);
    complete = asked - ((status >> 1 & 0xff) + (status & 1));
}

void tw_udma_wait(uint32_t number) {
    while ((int32_t)(number - complete) > 0)
        look();
}

static void transfer(enum tw_direction direction, uint32_t l2, uint32_t l3, uint32_t bytes) {
    while (asked - complete >= QUEUE)
        look();
    const uint32_t inside = INSIDE(direction);
    TW_REGISTER(inside) = l2;
    TW_REGISTER(inside + 4) = bytes;
    TW_REGISTER(COMMAND) = direction == TW_TO_L2 ? LINEAR_READ : LINEAR_WRITE;
    TW_REGISTER(OUTSIDE) = l3 - TW_L3;
    TW_REGISTER(inside + 8) = START_WORDS;
    asked++;
}

/* What is dense needs no rows. */
static void shape(uint32_t registers, uint32_t bytes, uint32_t row) {
    TW_REGISTER(registers) = row != bytes;
    TW_REGISTER(registers + 4) = bytes;
    TW_REGISTER(registers + 8) = row;
}

uint32_t tw_udma_start(enum tw_direction direction, uint32_t l2, uint32_t l3, uint32_t bytes, uint32_t rows,
                       uint32_t l2_row, uint32_t l3_row) {
    if (rows == 1 || (l2_row == bytes && l3_row == bytes)) {
        bytes *= rows;
        rows = 1;
    }
    if (rows > 1 || by_rows) {
        shape(ROWS_OUTSIDE, bytes, rows > 1 ? l3_row : bytes);
        shape(ROWS_INSIDE, bytes, rows > 1 ? l2_row : bytes);
        by_rows = rows > 1;
    }
    for (; rows > 1 && bytes * rows > LARGEST; rows--, l2 += l2_row, l3 += l3_row)
        transfer(direction, l2, l3, bytes);
    bytes *= rows;
    for (; bytes > LARGEST; bytes -= LARGEST, l2 += LARGEST, l3 += LARGEST)
        transfer(direction, l2, l3, LARGEST);
    transfer(direction, l2, l3, bytes);
    return asked;
}
