/* ---
op: ITALinear
engine: ita
types: {X: int8, W: int8, B: uint8, Y: int8}
jobs:
  - {mode: linear, rows: "64 * M", columns: "64 * N", inner: "64 * K"}
--- */
#include "tilewright_kernel.h"

#include "tilewright_ita.h"

/* Each tile of the result is a layer of its own, so there may be any number of them. */
static void ita_linear_tiles(const int8_t *X, const int8_t *W, const uint8_t *B, int8_t *Y, int M, int N, int K,
                             int mult, int shift, int add, int activation, int b, int c, int act_mult, int act_shift,
                             int act_add, int turned) {
    const struct tw_ita_layer layer = {.tiles = 1u | (uint32_t)K << 4 | 1u << 8 | 1u << 12,
                                       .mult = (uint32_t)mult,
                                       .shift = (uint32_t)shift,
                                       .add = (uint32_t)add & 0xffu,
                                       .kind = TW_ITA_LINEAR | (uint32_t)activation << 2,
                                       .curve = ((uint32_t)b & 0xffffu) | (uint32_t)c << 16,
                                       .activation = (uint32_t)act_mult | (uint32_t)act_shift << 8 |
                                                     ((uint32_t)act_add & 0xffu) << 16};
    int job = 0;
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++)
            for (int k = 0; k < K; k++, job++) {
                const int last = job + 1 == M * N * K;
                const int8_t *weights = W + (n * K + k) * TW_ITA_TILE;
                const int8_t *next = n * K + k + 1 < N * K ? weights + TW_ITA_TILE : W;
                tw_ita_start(&layer, job, X + (m * K + k) * TW_ITA_TILE, weights, next,
                             B + (turned ? m : n) * TW_ITA_BIAS, Y + (m * N + n) * TW_ITA_TILE,
                             (job == 0 ? TW_ITA_FIRST : 0u) | (last ? 0u : TW_ITA_NEXT) |
                                 (turned ? TW_ITA_ROW_BIAS : 0u) | (k + 1 < K ? TW_ITA_NO_OUTPUT : 0u));
            }
}
