/* ---
op: iAttention
types: {Q: int8, K: int8, V: int8, score_mul: int32, table: uint8, mean_mul: int32, Y: int8}
when: {D: "D % 4 == 0", L: "<= 1024"}      # so that 64 times a sum fits 32 bits
strided: [K, V, Y]
scratch: "(L+3)//4*12"
# Four keys at a time, a weight for each key, blocks of four rows and columns of values, a quotient for each result. Heads
# take turns among the cores; what is left of them is shared by several cores, each with some columns of the values.
cycles:
  keys: (ROUNDS := steps(H, PARTS)) * S * L * words(D)
  weights: ROUNDS * S * L
  values: (WORDS := (H - (LEFT := H % PARTS)) // PARTS * words(D) + some(LEFT) * steps(words(D), PARTS // max(LEFT, 1))) * S * fours(L)
  results: WORDS * S
  rows: ROUNDS * S
--- */
#include "tilewright_kernel.h"

/* out[i] = q . k[i] for four keys, or for fewer of them. */
static inline void iattention_s8_dots(const int8_t *q, const int8_t *k, int row, int D, int count, int32_t *out) {
    static const int32_t zero[4];
    if (count == 4) {
        TW_DOT_1X4(TW_SDOT_S8, q, k, row, D, zero, out)
    } else {
        for (int i = 0; i < count; i++) {
            out[i] = 0;
            for (int d = 0; d < D; d++)
                out[i] += q[d] * k[i * row + d];
        }
    }
}

/* Scores of all keys; returns the largest. */
TW_APART int iattention_s8_scores(const int8_t *q, const int8_t *k, int row, int D, int count, int32_t mul, int shift,
                                  int16_t *scores) {
    const uint32_t half = UINT32_C(1) << shift >> 1;
    int top = -32768;
    for (int l = 0; l < count; l += 4, k += 4 * row, scores += 4) {
        int32_t sums[4];
        const int few = tw_min(4, count - l);
        iattention_s8_dots(q, k, row, D, few, sums);
        for (int i = 0; i < few; i++) {
            const uint32_t product = (uint32_t)sums[i] * (uint32_t)mul + half;
            const int score = tw_clamp((int32_t)product >> shift, -32768, 32767);
            scores[i] = (int16_t)score;
            top = tw_max(top, score);
        }
    }
    return top;
}

/* Weights of all keys, and zeros up to a multiple of four; returns their sum. */
TW_APART int32_t iattention_s8_weights(const int16_t *scores, int count, int top, const uint8_t *table, int last,
                                       uint8_t *weights) {
    int32_t total = 0;
    TW_UNROLL_BY(2)
    for (int l = 0; l < count; l++) {
        weights[l] = table[tw_min(top - scores[l], last)];
        total += weights[l];
    }
    for (int l = count; l & 3; l++)
        weights[l] = 0;
    return total;
}

/* sum[0..3] = weights . v for four columns: words of four rows are turned into words of four columns. */
static inline void iattention_s8_columns(const uint8_t *weights, const int8_t *v, int row, int count, int32_t *sum) {
    const int8_t *x0 = v, *x1 = x0 + row, *x2 = x1 + row, *x3 = x2 + row;
    const uint8_t *w = weights;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    const int fours = count >> 2;
    if (fours)
        __asm__ volatile(
            ".option push\n.option norvc\n" TW_REPEAT(
                "%[fours]",
                "42") ".insn r 0x0B, 7, 0x10, t0, %[x0], %[step]\n.insn r 0x0B, 7, 0x10, t1, %[x1], %[step]\n"
                      ".insn r 0x0B, 7, 0x10, t2, %[x2], %[step]\n.insn r 0x0B, 7, 0x10, t3, %[x3], %[step]\n"
                      "mv t4, t0\nmv t5, t2\n"
                      ".insn r 0x57, 1, 0x64, t0, t1, %[low]\n.insn r 0x57, 1, 0x64, t4, t1, %[high]\n"
                      ".insn r 0x57, 1, 0x64, t2, t3, %[low]\n.insn r 0x57, 1, 0x64, t5, t3, %[high]\n"
                      "mv t1, t0\nmv t3, t4\n"
                      ".insn r 0x57, 1, 0x64, t0, t2, %[even]\n.insn r 0x57, 1, 0x64, t1, t2, %[odd]\n"
                      ".insn r 0x57, 1, 0x64, t4, t5, %[even]\n.insn r 0x57, 1, 0x64, t3, t5, %[odd]\n" TW_NEXT_WORD(
                          "t2", "%[w]") TW_SDOT(TW_SDOT_U8, "%[s0]", "t2", "t0")
                          TW_SDOT(TW_SDOT_U8, "%[s1]", "t2", "t1") TW_SDOT(TW_SDOT_U8, "%[s2]", "t2", "t4")
                              TW_SDOT(TW_SDOT_U8, "%[s3]", "t2", "t3") ".option pop\n"
            : [x0] "+r"(x0), [x1] "+r"(x1), [x2] "+r"(x2), [x3] "+r"(x3), [w] "+r"(w), [s0] "+r"(s0), [s1] "+r"(s1),
              [s2] "+r"(s2), [s3] "+r"(s3)
            : [fours] "r"(fours), [step] "r"(4 * row), [low] "r"(0x05010400u), [high] "r"(0x07030602u),
              [even] "r"(0x05040100u), [odd] "r"(0x07060302u)
            : "t0", "t1", "t2", "t3", "t4", "t5", "memory");
    for (int l = 4 * fours; l < count; l++, x0 += row, w++) {
        s0 += *w * x0[0];
        s1 += *w * x0[1];
        s2 += *w * x0[2];
        s3 += *w * x0[3];
    }
    sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3;
}

static void iattention_s8(const int8_t *Q, const int8_t *K, const int8_t *V, const int32_t *score_mul,
                          const uint8_t *table, const int32_t *mean_mul, int8_t *Y, int H, int S, int L, int D,
                          int K_s0, int K_s1, int V_s0, int V_s1, int Y_s0, int table_n0, int score_shift,
                          int mean_shift, int causal, int PART, int PARTS, void *scratch) {
    int16_t *const scores = scratch;
    uint8_t *const weights = (uint8_t *)scratch + (L + 3) / 4 * 8;
    const int words = D / 4;
    for (int first = 0; first < H; first += PARTS) {
        /* Of the heads that are left in the end, each has a team of cores. */
        const int team = first + PARTS <= H ? 1 : PARTS / (H - first), head = first + PART / team;
        const int share = (words + team - 1) / team, from = PART % team * share, end = tw_min(from + share, words);
        if (head >= H)
            break;
        for (int s = 0; s < S && from < end; s++) {
            const int seen = causal ? tw_min(L, tw_max(1, L - S + s + 1)) : L;
            const int8_t *const q = Q + (head * S + s) * D, *const k = K + head * K_s0, *const v = V + head * V_s0;
            const int top = iattention_s8_scores(q, k, K_s1, D, seen, score_mul[head], score_shift, scores);
            const int32_t total = iattention_s8_weights(scores, seen, top, table, table_n0 - 1, weights);
            for (int word = from; word < end; word++) {
                int32_t sums[4];
                iattention_s8_columns(weights, v + 4 * word, V_s1, seen, sums);
                for (int i = 0; i < 4; i++) {
                    const int d = 4 * word + i;
                    const int32_t mean = sums[i] * 64, half = total >> 1;
                    const int32_t quotient = total ? (mean >= 0 ? mean + half : mean - half) / total : 0;
                    const uint32_t product =
                        (uint32_t)quotient * (uint32_t)mean_mul[head * D + d] + (UINT32_C(1) << mean_shift >> 1);
                    Y[s * Y_s0 + head * D + d] = (int8_t)tw_clamp((int32_t)product >> mean_shift, -128, 127);
                }
            }
        }
    }
}
