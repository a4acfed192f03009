/* ---
op: iAttention
types: {Q: int8, K: int8, V: int8, NK: int8, NV: int8, score_mul: int32, table: uint8, mean_mul: int32, Y: int8}
when: {D: "D % 4 == 0", S: "S % 4 == 0", L: "L + S <= 1024"}      # so that 64 times a sum fits 32 bits
strided: [K, V, Y]
scratch: "((L+3)//4*4 + S)*12"
# Four queries of a head with two keys, or channels, at a time; a weight for each query and key, a quotient for each result.
# Queries of a head take turns among the cores, by fours.
cycles:
  keys: (ROUNDS := steps(fours(H * S), PARTS)) * (SEEN := L + twos(S)) * words(D)
  weights: ROUNDS * SEEN
  values: ROUNDS * D * fours(SEEN)
  results: ROUNDS * D
  rounds: ROUNDS
--- */
#include "tilewright_attention.h"

/* Scores of four queries and some keys: those of a query are `step` behind those of the one before. */
TW_APART void iattention_fours_s8_scores(const int8_t *q, const int8_t *k, int row, int D, int count, int32_t mul,
                                         int shift, int16_t *scores, int step) {
    static const int32_t zero[2];
    const int32_t half = (int32_t)(UINT32_C(1) << shift >> 1);
    for (int l = 0; l < count; l += 2, k += 2 * row, scores += 2) {
        int32_t sums[64];
        const int two = l + 1 < count;
        TW_DOT_4X2(TW_SDOT_S8, q, D, k, two ? row : 0, D, zero, sums)
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j < 2; j++) {
                int score = (int32_t)((uint32_t)sums[16 * i + j] * (uint32_t)mul + (uint32_t)half) >> shift;
                __asm__(".insn r 0x33, 1, 0x0A, %0, %0, x16" : "+r"(score)); /* p.clip */
                scores[i * step + (j & two)] = (int16_t)score;
            }
        }
    }
}

TW_APART int iattention_fours_s8_top(const int16_t *scores, int count, int top) {
    for (int l = 0; l < count; l++)
        top = tw_max(top, scores[l]);
    return top;
}

/* sums[i][j] of four queries and two channels. */
static inline void iattention_fours_s8_channels(const uint8_t *weights, int step, const int8_t *v, int row, int count,
                                                const int32_t *bias, int32_t *sums) {
    if (count >= 4) {
        TW_DOT_4X2(TW_SDOT_U8, weights, step, v, row, count & ~3, bias, sums)
    } else {
        for (int i = 0; i < 4; i++)
            sums[16 * i] = bias[0], sums[16 * i + 1] = bias[1];
    }
    for (int l = count & ~3; l < count; l++) {
        for (int i = 0; i < 4; i++) {
            sums[16 * i] += weights[i * step + l] * v[l];
            sums[16 * i + 1] += weights[i * step + l] * v[row + l];
        }
    }
}

static void iattention_fours_s8(const int8_t *Q, const int8_t *K, const int8_t *V, const int8_t *NK, const int8_t *NV,
                                const int32_t *score_mul, const uint8_t *table, const int32_t *mean_mul, int8_t *Y,
                                int H, int S, int L, int D, int K_s0, int K_s1, int V_s0, int V_s1, int Y_s0,
                                int table_n0, int score_shift, int mean_shift, int PART, int PARTS, void *scratch) {
    static const int32_t zero[2];
    const int old = (L + 3) / 4 * 4, step = old + S, blocks = H * S / 4, last = table_n0 - 1;
    int16_t *const scores = scratch;
    uint8_t *const weights = (uint8_t *)(scores + 4 * step);
    for (int first = 0; first < blocks; first += PARTS) {
        /* There and back, because later ones see more. */
        const int block = first + (first / PARTS & 1 ? PARTS - 1 - PART : PART);
        if (block >= blocks)
            continue;
        const int head = 4 * block / S, s = 4 * block % S, seen = s + 4;
        const int8_t *const q = Q + 4 * block * D, *const v = V + head * V_s0, *const own = NV + head * D * S;
        const int32_t mul = score_mul[head];
        if (L)
            iattention_fours_s8_scores(q, K + head * K_s0, K_s1, D, L, mul, score_shift, scores, step);
        iattention_fours_s8_scores(q, NK + head * S * D, D, D, seen, mul, score_shift, scores + old, step);
        uint32_t total[4], inverse[4];
        for (int i = 0; i < 4; i++) {
            int16_t *const mine = scores + i * step;
            uint8_t *const to = weights + i * step;
            const int top = iattention_fours_s8_top(mine + old, s + i + 1, iattention_fours_s8_top(mine, L, -32768));
            for (int l = L; l < old; l++) /* nothing is read that is not there */
                mine[l] = 0;
            total[i] = tw_attention_weights(mine, L, top, table, last, to) +
                       tw_attention_weights(mine + old, s + i + 1, top, table, last, to + old);
            total[i] += !total[i]; /* sums are 0 then */
            inverse[i] = UINT32_MAX / total[i];
        }
        for (int d = 0; d < D; d += 2) {
            int32_t sums[64], more[64];
            iattention_fours_s8_channels(weights, step, v + d * V_s1, V_s1, L, zero, sums);
            iattention_fours_s8_channels(weights + old, step, own + d * S, S, seen, zero, more);
            int8_t *y = Y + s * Y_s0 + head * D + d;
            const uint32_t mean[2] = {(uint32_t)mean_mul[head * D + d], (uint32_t)mean_mul[head * D + d + 1]};
            TW_UNROLL_BY(1)
            for (int i = 0; i < 4; i++, y += Y_s0)
                TW_UNROLL for (int j = 0; j < 2; j++) y[j] =
                    tw_attention_mean(sums[16 * i + j] + more[16 * i + j], total[i], inverse[i], mean[j], mean_shift);
        }
    }
}
