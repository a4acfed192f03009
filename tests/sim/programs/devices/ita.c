/* Jobs of ITA: a linear layer of four by four tiles with one product each, four jobs on their way at a time. */
#include "devices.h"

enum { TILE = 64 * 64, TILES = 4, JOBS = TILES * TILES };
IN_L1 __attribute__((aligned(64))) int8_t input[TILES * TILE], weights[TILES * TILE], output[JOBS * TILE];
IN_L1 __attribute__((aligned(64))) uint8_t bias[TILES * 192];

static uint32_t offset(const void *at) { return (uint32_t)at - 0x10000000u; }

static uint32_t acquire(void) {
    uint32_t number;
    do
        number = REGISTER(NPU + 4);
    while ((int32_t)number < 0);
    return number;
}

static void trigger(uint32_t number) {
    volatile uint32_t *const r = &REGISTER(NPU + 0x20);
    const uint32_t row = number / TILES, column = number % TILES;
    r[0] = offset(input + row * TILE);
    r[1] = offset(weights + column * TILE);
    r[2] = offset(weights + (column + 1) % TILES * TILE);
    r[3] = offset(bias + column * 192);
    r[4] = offset(output + number * TILE);
    r[6] = TILES | 1u << 4 | TILES << 8 | 1u << 12;
    r[7] = 1;
    r[13] = 2;
    r[14] = (number == 0 ? 1u : 0u) | (number + 1 < JOBS ? 2u : 0u);
    REGISTER(NPU) = 0;
}

void program(uint32_t core) {
    enable_caches();
    if (core != 0)
        return;
    for (int i = 0; i < TILES * TILE; i++) {
        input[i] = i % 64 == 0 ? 16 : 0;
        weights[i] = 6;
    }
    for (int i = 0; i < TILES * 192; i++)
        bias[i] = i % 3 == 0 ? 5 : 0;
    set_mask(NPU_EVENT);
    REGISTER(NPU + 0x14) = 0;
    uint32_t since = 0;
    for (uint32_t number = 0; number < JOBS; number++) {
        const uint32_t acquired = acquire();
        if (number == 0) {
            results[0] = acquired;
            results[1] = REGISTER(NPU + 4);
            since = cycles();
        }
        trigger(number);
        if (number == 3) {
            results[2] = REGISTER(NPU + 0x0c);
            results[3] = REGISTER(NPU + 4);
        }
    }
    while (REGISTER(NPU + 8) != JOBS)
        results[4] = wait_for_event();
    results[6] = cycles() - since;
    results[5] = REGISTER(NPU + 8);
    int sum = 0;
    for (int i = 0; i < JOBS * TILE; i += TILE + 65)
        sum = output[i];
    results[7] = (uint32_t)sum;
}
