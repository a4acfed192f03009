/* ---
op: ITAAttention
types: {Q: int8, K: int8, V: int8, Y: int8}
scratch: "64 * N"
# Tiles of queries and of values that are multiplied.
cycles:
  products: M * H * E * N * D
--- */
#include "tilewright_kernel.h"

#include "tilewright_ita_scale.h"

/* A value that lies `below` the maximum is halved that often. */
static inline uint32_t ita_attention_halved(uint32_t value, int below) { return value >> tw_min(below, 31); }

static void ita_attention(const int8_t *Q, const int8_t *K, const int8_t *V, int8_t *Y, int M, int H, int E, int D,
                          int N, int score_mult, int score_shift, int score_add, int mix_mult, int mix_shift,
                          int mix_add, void *scratch) {
    int8_t *const row = scratch;
    for (int h = 0; h < H * E; h++)
        for (int line = 0; line < 64 * M; line++) {
            const int8_t *const queries = Q + (line / 64 * H + h / E) * D * 4096 + line % 64 * 64;
            const int8_t *const values = V + h / E * D * N * 4096;
            int8_t *const results = Y + (line / 64 * H * E + h) * D * 4096 + line % 64 * 64;
            int top = -128;
            uint32_t sum = 0;
            for (int first = 0; first < 64 * N; first += 16) {
                int highest = top;
                for (int key = first; key < first + 16; key++) {
                    int32_t score = 0;
                    for (int d = 0; d < D; d++) {
                        const int8_t *q = queries + d * 4096;
                        const int8_t *k = K + ((key / 64 * H * E + h) * D + d) * 4096 + key % 64 * 64;
                        for (int i = 0; i < 64; i++)
                            score += q[i] * k[i];
                    }
                    row[key] = (int8_t)tw_ita_scaled(score, score_mult, score_shift, score_add);
                    highest = tw_max(highest, row[key]);
                }
                sum = ita_attention_halved(sum, highest - top);
                top = highest;
                for (int key = first; key < first + 16; key++)
                    sum += ita_attention_halved(256, top - row[key]);
            }
            const uint32_t inverse = 65280u / sum;
            for (int d = 0; d < D; d++)
                for (int i = 0; i < 64; i++) {
                    int32_t mixed = 0;
                    for (int key = 0; key < 64 * N; key++)
                        mixed += (int32_t)ita_attention_halved(inverse, top - row[key]) *
                                 values[(d * N + key / 64) * 4096 + i * 64 + key % 64];
                    results[d * 4096 + i] = (int8_t)tw_ita_scaled(mixed, mix_mult, mix_shift, mix_add);
                }
        }
}
