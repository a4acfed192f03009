/* ---
op: iAttention
types: {Q: int8, K: int8, V: int8, NK: int8, NV: int8, score_mul: int32, table: uint8, mean_mul: int32, Y: int8}
strided: [K, V, Y]
scratch: "(L + S + 1)//2*4"
# Products with keys and with values, a weight for each key, a quotient for each result.
cycles:
  products: H * S * (L + S) * D
  weights: H * S * (L + S)
  results: H * S * D
  rows: H * S
--- */
#include "tilewright_kernel.h"

/* Scores of some keys; returns the largest. */
static inline int iattention_scores(const int8_t *q, const int8_t *k, int row, int count, int D, int32_t mul, int shift,
                                    int top, int16_t *scores) {
    for (int l = 0; l < count; l++, k += row) {
        int32_t sum = 0;
        for (int d = 0; d < D; d++)
            sum += q[d] * k[d];
        const uint32_t product = (uint32_t)sum * (uint32_t)mul + (UINT32_C(1) << shift >> 1);
        scores[l] = (int16_t)tw_clamp((int32_t)product >> shift, -32768, 32767);
        top = tw_max(top, scores[l]);
    }
    return top;
}

static inline int32_t iattention_sum(const int16_t *weights, const int8_t *v, int count) {
    int32_t sum = 0;
    for (int l = 0; l < count; l++)
        sum += weights[l] * v[l];
    return sum;
}

static void iattention(const int8_t *Q, const int8_t *K, const int8_t *V, const int8_t *NK, const int8_t *NV,
                       const int32_t *score_mul, const uint8_t *table, const int32_t *mean_mul, int8_t *Y, int H, int S,
                       int L, int D, int K_s0, int K_s1, int V_s0, int V_s1, int Y_s0, int table_n0, int score_shift,
                       int mean_shift, void *scratch) {
    int16_t *const scores = scratch;
    for (int row = 0; row < H * S; row++, Q += D) {
        const int h = row / S, s = row % S;
        const int8_t *v = V + (ptrdiff_t)h * V_s0, *new = NV + (ptrdiff_t)h * S * D;
        int top = iattention_scores(Q, K + (ptrdiff_t)h * K_s0, K_s1, L, D, score_mul[h], score_shift, -32768, scores);
        top = iattention_scores(Q, NK + (ptrdiff_t)h * S * D, D, s + 1, D, score_mul[h], score_shift, top, scores + L);
        int32_t total = 0;
        for (int l = 0; l <= L + s; l++) {
            scores[l] = table[tw_min(top - scores[l], table_n0 - 1)];
            total += scores[l];
        }
        const int32_t *const mul = mean_mul + (ptrdiff_t)h * D;
        int8_t *const y = Y + (ptrdiff_t)s * Y_s0 + (ptrdiff_t)h * D;
        for (int d = 0; d < D; d++, v += V_s1, new += S) {
            const int32_t sum = iattention_sum(scores, v, L) + iattention_sum(scores + L, new, s + 1);
            const int64_t mean = (int64_t)sum * 64, half = total >> 1;
            const int64_t quotient = total ? (mean >= 0 ? mean + half : mean - half) / total : 0;
            const uint32_t product = (uint32_t)quotient * (uint32_t)mul[d] + (UINT32_C(1) << mean_shift >> 1);
            y[d] = (int8_t)tw_clamp((int32_t)product >> mean_shift, -128, 127);
        }
    }
}
