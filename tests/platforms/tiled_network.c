/* What is wrong with it is chosen when it is built: WAITS, CORES or LARGE. */
#include "network.h"

#include "tilewright_machine.h"

enum { TILE = 24, TILES = 5, ELEMENTS = TILE * TILES, BYTES = TILE * 4 };
#ifdef LARGE
#define L1_BYTES (4 * BYTES - 4)
#else
#define L1_BYTES (4 * BYTES)
#endif

const struct tilewright_tensor network_inputs[] = {{"x", "int32", 1, {ELEMENTS}, ELEMENTS * 4}};
const struct tilewright_tensor network_outputs[] = {{"y", "int32", 1, {ELEMENTS}, ELEMENTS * 4}};
const struct tilewright_memory network_memory[] = {{"L1", L1_BYTES}, {"L2", 0}};

static void load(unsigned char *l1, const unsigned char *x, int tile) {
    tw_dma_start(tile % 2, l1 + tile % 2 * BYTES, x + tile * BYTES, BYTES, 1, 0, 0, 1, 0, 0);
}

static void triple(int32_t *y, const int32_t *x, int core) {
    for (int i = core * TILE / 4; i < (core + 1) * TILE / 4; i++) {
#ifdef CORES
        y[i] = x[i] * 3 + (i > 0 && y[i - 1] != x[i - 1] * 3); /* the core before this one must be done */
#else
        y[i] = x[i] * 3;
#endif
    }
}

void network_run_in(unsigned char *const *memory, const void *const *inputs, void *const *outputs) {
    unsigned char *const l1 = memory[0], *const y = outputs[0];
    load(l1, inputs[0], 0);
    for (int tile = 0; tile < TILES; tile++) {
        const int slot = tile % 2;
        if (tile + 1 < TILES)
            load(l1, inputs[0], tile + 1);
#ifndef WAITS
        tw_dma_wait(slot);
#endif
        tw_dma_wait(2 + slot);
        int32_t *const to = (int32_t *)(void *)(l1 + (2 + slot) * BYTES);
        const int32_t *const from = (const int32_t *)(const void *)(l1 + slot * BYTES);
        TW_CORES(core, 4) triple(to, from, core);
        tw_dma_start(2 + slot, y + tile * BYTES, to, BYTES, 1, 0, 0, 1, 0, 0);
    }
    for (int channel = 0; channel < 4; channel++)
        tw_dma_wait(channel);
}
