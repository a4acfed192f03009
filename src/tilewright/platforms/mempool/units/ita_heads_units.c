/* ---
op: ITAHeads
engine: ita
types: {X: int8, W: int8, Y: int8}
scratch: 48 # addresses of the scales of each unit
jobs:
  - {mode: head, rows: S, embedding: E, projection: projection}
--- */
#include "tilewright_kernel.h"

#include "tilewright_units.h"

/* A unit for each head: all work at the same time, on the inputs in the block of the first one. */
static void ita_heads_units(const int8_t *X, const int8_t *W, int8_t *Y, int H, int S, int E, int projection,
                            void *scratch) {
    uint32_t *scales = scratch;
    tw_await_ita(1);
    for (int unit = 0; unit < H; unit++, scales += 3) {
        const int8_t *const entry = W + 44 * unit;
        const uint32_t at = (uint32_t)(uintptr_t)entry;
        scales[0] = at + 4;
        scales[1] = at + 12;
        scales[2] = at + 20;
        TW_ITA_REGISTER(unit, 1) = unit ? (uint32_t)(uintptr_t)W + *(const uint32_t *)entry : (uint32_t)(uintptr_t)X;
        TW_ITA_REGISTER(unit, 2) = (uint32_t)(uintptr_t)(Y + unit * S * E);
        TW_ITA_REGISTER(unit, 3) = (uint32_t)(uintptr_t)scales;
        TW_ITA_REGISTER(unit, 4) = (uint32_t)S;
        TW_ITA_REGISTER(unit, 5) = (uint32_t)E;
        TW_ITA_REGISTER(unit, 6) = (uint32_t)projection;
    }
    __asm__ volatile("fence" ::: "memory");
    for (int unit = 0; unit < H; unit++)
        TW_ITA_REGISTER(unit, 0) = TW_ITA_START;
}
