/* ---
op: ITALinear
engine: ita
types: {X: int8, W: int8, B: uint8, Y: int8}
when:
  K: "K == K_whole or (M == 1 and N == 1)" # the engine keeps the sums of one tile
accumulate: [K]
jobs:
  - {mode: linear, rows: "64 * M", columns: "64 * N", inner: "64 * K", output: LAST}
--- */
#include "tilewright_kernel.h"

#include "tilewright_ita.h"

TW_INLINE void ita_linear_jobs(const struct tw_ita_layer *layer, const int8_t *X, const int8_t *W, const uint8_t *B,
                               int8_t *Y, int M, int N, int K, int job, int last, int turned) {
    const int8_t *const behind = W + N * K * TW_ITA_TILE, *weights = W;
    uint32_t flags = TW_ITA_FIRST | TW_ITA_NEXT | (turned ? TW_ITA_ROW_BIAS : 0u);
    for (int m = 0; m < M; m++, X += K * TW_ITA_TILE) {
        const uint8_t *bias = turned ? B + m * TW_ITA_BIAS : B;
        for (int n = 0; n < N; n++, Y += TW_ITA_TILE, bias += turned ? 0 : TW_ITA_BIAS)
            for (int k = 0; k < K; k++, job++) {
                const int8_t *const next = weights + TW_ITA_TILE == behind ? W : weights + TW_ITA_TILE;
                if (m + 1 == M && n + 1 == N && k + 1 == K)
                    flags &= ~TW_ITA_NEXT;
                tw_ita_start(layer, job, X + k * TW_ITA_TILE, weights, next, bias, Y,
                             k + 1 < K || !last ? flags | TW_ITA_NO_OUTPUT : flags);
                flags &= ~TW_ITA_FIRST;
                weights = next;
            }
    }
}

/* Each tile of the result is a layer of its own, so there may be any number of them. A call may be for some of the products
 * of one tile: those before `K_from` were the jobs before, and results come with the last. Where it is one tile, as in the
 * short steps in which the engine waits for its driver, code is shorter; inlined for each layer, it is hardly longer. */
static inline __attribute__((always_inline)) void ita_linear_tiles(const int8_t *X, const int8_t *W, const uint8_t *B,
                                                                   int8_t *Y, int M, int N, int K, int K_from,
                                                                   int K_whole, int mult, int shift, int add,
                                                                   int activation, int b, int c, int act_mult,
                                                                   int act_shift, int act_add, int turned) {
    const struct tw_ita_layer layer = {.tiles = 1u | (uint32_t)K_whole << 4 | 1u << 8 | 1u << 12,
                                       .mult = (uint32_t)mult,
                                       .shift = (uint32_t)shift,
                                       .add = (uint32_t)add & 0xffu,
                                       .kind = TW_ITA_LINEAR | (uint32_t)activation << 2,
                                       .curve = ((uint32_t)b & 0xffffu) | (uint32_t)c << 16,
                                       .activation = (uint32_t)act_mult | (uint32_t)act_shift << 8 |
                                                     ((uint32_t)act_add & 0xffu) << 16};
    if (M == 1 && N == 1)
        ita_linear_jobs(&layer, X, W, B, Y, 1, 1, K, K_from, K_from + K == K_whole, turned);
    else
        ita_linear_jobs(&layer, X, W, B, Y, M, N, K, 0, 1, turned);
}
