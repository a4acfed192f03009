/* Small programs for the emulated machine, right ones and wrong ones: machine_cases CASE start|wait|random SEED */
#include "tilewright_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 512 };

/* Volatile, so that no compiler moves an access across a transfer that it knows nothing of. */
static unsigned char *volatile here, *volatile there;

static void line(int channel, size_t to, size_t from, size_t bytes) {
    tw_dma_start(channel, here + to, there + from, bytes, 1, 0, 0, 1, 0, 0);
}

/* Copies planes x rows x bytes with strides and compares all of the destination, the bytes between runs included. */
static int copies(size_t bytes, int rows, ptrdiff_t to_row, ptrdiff_t from_row, int planes, ptrdiff_t to_plane,
                  ptrdiff_t from_plane) {
    unsigned char expected[BYTES];
    memcpy(expected, here, BYTES);
    for (int p = 0; p < planes; p++)
        for (int r = 0; r < rows; r++)
            memcpy(expected + p * to_plane + r * to_row, there + p * from_plane + r * from_row, bytes);
    tw_dma_start(1, here, there, bytes, rows, to_row, from_row, planes, to_plane, from_plane);
    tw_dma_wait(0);
    tw_dma_wait(1);
    return memcmp(expected, here, BYTES) != 0;
}

static int right_copies(void) {
    return copies(100, 1, 0, 0, 1, 0, 0) + copies(7, 5, 9, 20, 1, 0, 0) + copies(16, 4, 16, 16, 3, 64, 100) +
           copies(3, 4, 24, 5, 6, 4, 31) /* rows outside planes */ +
           copies(8, 6, 8, 0, 2, 64, 8) /* one row repeated */ + copies(0, 4, 8, 8, 1, 0, 0) +
           copies(8, 0, 8, 8, 1, 0, 0) + copies(8, 4, 8, 8, 0, 0, 0);
}

/* Two pending transfers whose runs lie between each other; more pending transfers than the list has room for at first. */
static int right_neighbours(void) {
    tw_dma_start(0, here, there, 8, 8, 16, 8, 1, 0, 0);
    tw_dma_start(0, here + 8, there + 64, 8, 8, 16, 8, 1, 0, 0);
    for (size_t i = 0; i < 20; i++)
        line(1, 256 + 5 * i, 256 + 5 * i, 5);
    tw_dma_wait(0);
    int wrong = 0;
    for (int i = 0; i < 8; i++)
        wrong += memcmp(here + 16 * i, there + 8 * i, 8) != 0 || memcmp(here + 16 * i + 8, there + 64 + 8 * i, 8) != 0;
    here[0] = there[0] = 1; /* both ends belong to the program again */
    tw_dma_wait(1);
    return wrong + (memcmp(here + 256, there + 256, 100) != 0);
}

static int right_cores(void) {
    int visits[9] = {0}, wrong = 0;
    for (int call = 0; call < 20; call++) {
        TW_CORES(core, 9) {
            visits[core]++;
            printf("%d ", core);
        }
        printf("\n");
        for (int i = 0; i < 9; i++)
            wrong += visits[i] != call + 1;
    }
    TW_CORES(core, 1) wrong += core;
    return wrong;
}

/* Reads too early: under AddressSanitizer an error, otherwise the sum is wrong unless the bytes are there already. */
static int early_read(void) {
    int sum = 0;
    line(0, 0, 0, 64);
    line(1, 64, 64, 64);
    tw_dma_wait(1);
    for (int i = 0; i < 64; i++)
        sum += here[i] == there[i];
    tw_dma_wait(0);
    return sum != 64;
}

static int written_destination(void) {
    line(0, 3, 0, 4); /* too small for AddressSanitizer */
    here[4] = (unsigned char)~here[4];
    tw_dma_wait(0);
    return 0;
}

static int changed_source(void) {
    line(2, 0, 16, 40);
    there[55]++;
    tw_dma_wait(2);
    return 0;
}

static int same_destination(void) {
    line(0, 0, 0, 64);
    line(1, 60, 64, 64);
    return 0;
}

static int written_source(void) {
    line(0, 0, 0, 64);
    tw_dma_start(1, there + 56, here + 128, 8, 1, 0, 0, 1, 0, 0);
    return 0;
}

static int read_destination(void) {
    tw_dma_start(0, here, there, 8, 4, 32, 8, 1, 0, 0);
    tw_dma_start(1, there + 128, here + 16, 8, 4, 20, 8, 1, 0, 0); /* at 36: in the second row */
    return 0;
}

static int self_overlap(void) {
    tw_dma_start(0, here, there, 8, 3, 7, 8, 1, 0, 0);
    return 0;
}

static int onto_itself(void) {
    tw_dma_start(0, here, here + 4, 8, 1, 0, 0, 1, 0, 0);
    return 0;
}

static int not_waited(void) {
    line(0, 0, 0, 8);
    tw_dma_wait(1);
    return 0;
}

static int negative(void) {
    tw_dma_start(0, here, there, 8, -1, 8, 8, 1, 0, 0);
    return 0;
}

static int nested_cores(void) {
    int turns = 0;
    TW_CORES(outer, 4) { TW_CORES(inner, 4) turns += outer * inner; }
    return turns;
}

static int past_the_end(void) {
    line(0, BYTES - 4, 0, 8);
    return 0;
}

static int before_the_start(void) {
    tw_dma_start(0, here, there + 16, 8, 4, 8, -8, 1, 0, 0);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} cases[] = {
    {"right_copies", right_copies},
    {"right_neighbours", right_neighbours},
    {"right_cores", right_cores},
    {"early_read", early_read},
    {"written_destination", written_destination},
    {"changed_source", changed_source},
    {"same_destination", same_destination},
    {"written_source", written_source},
    {"read_destination", read_destination},
    {"self_overlap", self_overlap},
    {"onto_itself", onto_itself},
    {"not_waited", not_waited},
    {"negative", negative},
    {"nested_cores", nested_cores},
    {"past_the_end", past_the_end},
    {"before_the_start", before_the_start},
};

int main(int argc, char **argv) {
    if (argc != 4)
        return 100;
    const enum tw_moment moment = argv[2][0] == 's' ? TW_AT_START : argv[2][0] == 'w' ? TW_AT_WAIT : TW_AT_RANDOM;
    tw_machine_begin(moment, strtoull(argv[3], NULL, 10));
    here = malloc(BYTES);
    there = malloc(BYTES);
    tw_machine_memory("here", here, BYTES);
    tw_machine_memory("there", there, BYTES);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0) {
            const int status = cases[i].run();
            tw_machine_finish();
            return status ? 10 : 0;
        }
    return 100;
}
