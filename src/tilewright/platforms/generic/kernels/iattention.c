/* ---
op: iAttention
types: {Q: int8, K: int8, V: int8, score_mul: int32, table: uint8, mean_mul: int32, Y: int8}
strided: [K, V, Y]
scratch: "(L + 1)//2*4"
# Products with keys and with values, a weight for each key, a quotient for each result.
cycles:
  products: H * S * L * D
  weights: H * S * L
  results: H * S * D
  rows: H * S
--- */
#include "tilewright_kernel.h"

static void iattention(const int8_t *Q, const int8_t *K, const int8_t *V, const int32_t *score_mul,
                       const uint8_t *table, const int32_t *mean_mul, int8_t *Y, int H, int S, int L, int D, int K_s0,
                       int K_s1, int V_s0, int V_s1, int Y_s0, int table_n0, int score_shift, int mean_shift,
                       int causal, void *scratch) {
    int16_t *const scores = scratch;
    for (int row = 0; row < H * S; row++, Q += D) {
        const int h = row / S, s = row % S, seen = causal ? tw_min(L, tw_max(1, L - S + s + 1)) : L;
        const int8_t *k = K + (ptrdiff_t)h * K_s0, *v = V + (ptrdiff_t)h * V_s0;
        int top = -32768;
        for (int l = 0; l < seen; l++, k += K_s1) {
            int32_t sum = 0;
            for (int d = 0; d < D; d++)
                sum += Q[d] * k[d];
            const uint32_t product = (uint32_t)sum * (uint32_t)score_mul[h] + (UINT32_C(1) << score_shift >> 1);
            scores[l] = (int16_t)tw_clamp((int32_t)product >> score_shift, -32768, 32767);
            top = tw_max(top, scores[l]);
        }
        int32_t total = 0;
        for (int l = 0; l < seen; l++) {
            scores[l] = table[tw_min(top - scores[l], table_n0 - 1)];
            total += scores[l];
        }
        const int32_t *const mul = mean_mul + (ptrdiff_t)h * D;
        int8_t *const y = Y + (ptrdiff_t)s * Y_s0 + (ptrdiff_t)h * D;
        for (int d = 0; d < D; d++, v += V_s1) {
            int32_t sum = 0;
            for (int l = 0; l < seen; l++)
                sum += scores[l] * v[l];
            const int64_t mean = (int64_t)sum * 64, half = total >> 1;
            const int64_t quotient = total ? (mean >= 0 ? mean + half : mean - half) / total : 0;
            const uint32_t product = (uint32_t)quotient * (uint32_t)mul[d] + (UINT32_C(1) << mean_shift >> 1);
            y[d] = (int8_t)tw_clamp((int32_t)product >> mean_shift, -128, 127);
        }
    }
}
