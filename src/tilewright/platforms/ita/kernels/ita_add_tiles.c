/* ---
op: ITAAdd
engine: ita
types: {A: int8, B: int8, W: int8, Y: int8}
jobs:
  - {mode: linear, rows: "64 * M", columns: "64 * N", inner: 128, bias: 0}
--- */
#include "tilewright_kernel.h"

#include "tilewright_ita.h"

/* Each tile of the result is a layer of two products with the identity. */
static void ita_add_tiles(const int8_t *A, const int8_t *B, const int8_t *W, int8_t *Y, int M, int N, int mult,
                          int shift, int add) {
    const struct tw_ita_layer layer = {.tiles = 1u | 2u << 4 | 1u << 8 | 1u << 12,
                                       .mult = (uint32_t)mult,
                                       .shift = (uint32_t)shift,
                                       .add = (uint32_t)add & 0xffu,
                                       .kind = TW_ITA_LINEAR};
    const int jobs = 2 * M * N;
    for (int job = 0; job < jobs; job++) {
        const int at = job / 2 * TW_ITA_TILE;
        tw_ita_start(&layer, job, (job % 2 ? B : A) + at, W, W, 0, Y + at,
                     (job == 0 ? TW_ITA_FIRST : 0u) | (job + 1 < jobs ? TW_ITA_NEXT : 0u) | TW_ITA_NO_BIAS |
                         (job % 2 ? 0u : TW_ITA_NO_OUTPUT));
    }
}
