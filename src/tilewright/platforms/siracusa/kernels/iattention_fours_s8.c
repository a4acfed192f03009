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

/* Scores of four queries and some keys, two at a time, an odd last one twice: those of a query are `step` behind those of
 * the one before. The largest of two keys in turn are left in `tops`. */
TW_APART void iattention_fours_s8_scores(const int8_t *q, const int8_t *k, int row, int D, int count, int32_t mul,
                                         int shift, int16_t *scores, int step, int32_t *tops) {
    static const int32_t zero[2];
    TW_UNROLL_BY(1)
    for (int l = 0; l < count; l += 2, k += 2 * row, scores += 2) {
        int32_t sums[64];
        TW_DOT_4X2(TW_SDOT_S8, q, D, k, l + 1 < count ? row : 0, D, zero, sums)
        TW_UNROLL for (int i = 0; i < 4; i++) {
            const int32_t pair = tw_attention_pair(sums[16 * i], sums[16 * i + 1], mul, shift);
            *(int32_t *)(void *)(scores + i * step) = pair;
            __asm__(".insn r 0x57, 0, 0x18, %0, %0, %1" : "+r"(tops[i]) : "r"(pair)); /* pv.max.h */
        }
    }
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
        const int32_t none = (int32_t)0x80008000;
        int32_t tops[4] = {none, none, none, none}, unused[4] = {none, none, none, none};
        iattention_fours_s8_scores(q, K + head * K_s0, K_s1, D, L, mul, score_shift, scores, step, tops);
        const int8_t *const k = NK + head * S * D;
        iattention_fours_s8_scores(q, k, D, D, s, mul, score_shift, scores + old, step, tops);
        /* Of the last four keys each query sees one more than the one before. */
        iattention_fours_s8_scores(q, k + s * D, D, D, 4, mul, score_shift, scores + old + s, step, unused);
        uint32_t total[4], inverse[4];
        TW_UNROLL_BY(1)
        for (int i = 0; i < 4; i++) {
            int16_t *const mine = scores + i * step;
            uint8_t *const to = weights + i * step;
            int top = tw_max(tops[i] >> 16, (int16_t)tops[i]);
            TW_UNROLL_BY(1)
            for (int l = s; l <= s + i; l++)
                top = tw_max(top, mine[old + l]);
            TW_UNROLL_BY(1)
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
