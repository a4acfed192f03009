/* ---
op: ITAAttention
engine: ita
types: {Q: int8, K: int8, V: int8, Y: int8}
scratch: "4096 * N" # scores of a row of tiles
jobs:
  - {mode: attention, rows: "64 * M * H * E", columns: "64 * N", inner: "64 * D", bias: 0}
--- */
#include "tilewright_kernel.h"

#include "tilewright_ita.h"

static void ita_attention_tiles(const int8_t *Q, const int8_t *K, const int8_t *V, int8_t *Y, int M, int H, int E,
                                int D, int N, int score_mult, int score_shift, int score_add, int mix_mult,
                                int mix_shift, int mix_add, void *scratch) {
    int8_t *const scores = scratch;
    const struct tw_ita_layer layer = {.tiles = (uint32_t)N | 1u << 4 | (uint32_t)D << 8 | 1u << 12,
                                       .mult = (uint32_t)score_mult << 24,
                                       .shift = (uint32_t)score_shift << 24,
                                       .add = (uint32_t)score_add << 24,
                                       .mix_mult = (uint32_t)mix_mult,
                                       .mix_shift = (uint32_t)mix_shift,
                                       .mix_add = (uint32_t)mix_add & 0xffu,
                                       .kind = TW_ITA_SINGLE_ATTENTION};
    int job = 0;
    for (int head = 0; head < H * E; head++) {
        const int8_t *const keys = K + head * D * TW_ITA_TILE, *const values = V + head / E * D * N * TW_ITA_TILE;
        for (int m = 0; m < M; m++) {
            const int8_t *const queries = Q + (m * H + head / E) * D * TW_ITA_TILE;
            for (int n = 0; n < N; n++)
                for (int d = 0; d < D; d++, job++) {
                    const int8_t *const weights = keys + (n * H * E * D + d) * TW_ITA_TILE;
                    const int8_t *const next = d + 1 < D   ? weights + TW_ITA_TILE
                                               : n + 1 < N ? keys + (n + 1) * H * E * D * TW_ITA_TILE
                                                           : values;
                    tw_ita_start(&layer, job, queries + d * TW_ITA_TILE, weights, next, 0, scores + n * TW_ITA_TILE,
                                 (job == 0 ? TW_ITA_FIRST : 0u) | TW_ITA_NEXT | TW_ITA_NO_BIAS |
                                     (d + 1 < D ? TW_ITA_NO_OUTPUT : 0u));
                }
            for (int d = 0; d < D; d++)
                for (int n = 0; n < N; n++, job++) {
                    const int8_t *const weights = values + (d * N + n) * TW_ITA_TILE;
                    const int end = d + 1 == D && n + 1 == N, last = end && m + 1 == M && head + 1 == H * E;
                    const int8_t *const next = !end ? weights + TW_ITA_TILE : m + 1 < M ? keys : keys + D * TW_ITA_TILE;
                    tw_ita_start(&layer, job, scores + n * TW_ITA_TILE, weights, next, 0,
                                 Y + (m * H * E * D + head * D + d) * TW_ITA_TILE,
                                 (last ? 0u : TW_ITA_NEXT) | TW_ITA_NO_BIAS | (n + 1 < N ? TW_ITA_NO_OUTPUT : 0u));
                }
        }
    }
    /* The engine counts rows up to those of the keys, whichever head they are of. */
    if (M * H * E % N != 0)
        tw_ita_restart();
}
