/* ---
op: iAttention
types: {Q: int8, K: int8, V: int8, NK: int8, NV: int8, score_mul: int32, table: uint8, mean_mul: int32, Y: int8}
when: {D: "D % 4 == 0", S: "S % 4 == 0", L: "L + S <= 1024"}      # so that 64 times a sum fits 32 bits
strided: [K, V, Y]
scratch: "((L+3)//4*4 + S)*12 + D*16"
# Four queries of a head with four keys, or four channels, at a time, and with single keys that are left of the cache; a
# weight for each query and key, a quotient for each result.
# Queries of a head take turns among the cores, by fours.
cycles:
  keys: (ROUNDS := steps(fours(H * S), PARTS)) * (SEEN := L + twos(S)) * words(D)
  weights: ROUNDS * SEEN
  values: ROUNDS * words(D) * fours(SEEN)
  single: ROUNDS * D * left_of_fours(L)
  results: ROUNDS * D
  rounds: ROUNDS
--- */
#include "tilewright_attention.h"

/* Four times a product of a word of each query and one of a key or channel. */
#define IATTENTION_FOURS_S8_FOUR(CODE, value, s0, s1, s2, s3)                                                          \
    TW_SDOT(CODE, s0, "t0", value)                                                                                     \
    TW_SDOT(CODE, s1, "t1", value)                                                                                     \
    TW_SDOT(CODE, s2, "t2", value)                                                                                     \
    TW_SDOT(CODE, s3, "a5", value)
/* p.lw of a word of a query, or of a key or channel. */
#define IATTENTION_FOURS_S8_LOAD(to, from, step) ".insn r 0x0B, 7, 0x10, " to ", " from ", " step "\n"
/* As many words as a3 says: of queries, from s0 on, with steps of a1 and back with a2, and of keys or channels, from s1 on,
 * with steps of ra and back with a0. */
#define IATTENTION_FOURS_S8_WORDS(CODE)                                                                                \
    TW_REPEAT("a3", "48")                                                                                              \
    IATTENTION_FOURS_S8_LOAD("a3", "s1", "ra")                                                                         \
    IATTENTION_FOURS_S8_LOAD("t0", "s0", "a1")                                                                         \
    IATTENTION_FOURS_S8_LOAD("t1", "s0", "a1")                                                                         \
    IATTENTION_FOURS_S8_LOAD("t2", "s0", "a1")                                                                         \
    IATTENTION_FOURS_S8_LOAD("a5", "s0", "a2")                                                                         \
    IATTENTION_FOURS_S8_LOAD("a4", "s1", "ra")                                                                         \
    IATTENTION_FOURS_S8_FOUR(CODE, "a3", "a6", "s4", "s8", "t3")                                                       \
    IATTENTION_FOURS_S8_LOAD("a3", "s1", "ra")                                                                         \
    IATTENTION_FOURS_S8_FOUR(CODE, "a4", "a7", "s5", "s9", "t4")                                                       \
    IATTENTION_FOURS_S8_LOAD("a4", "s1", "a0")                                                                         \
    IATTENTION_FOURS_S8_FOUR(CODE, "a3", "s2", "s6", "s10", "t5")                                                      \
    IATTENTION_FOURS_S8_FOUR(CODE, "a4", "s3", "s7", "s11", "t6")
#define IATTENTION_FOURS_S8_ZEROS                                                                                      \
    "li a6, 0\nli a7, 0\nli s2, 0\nli s3, 0\nli s4, 0\nli s5, 0\nli s6, 0\nli s7, 0\n"                                 \
    "li s8, 0\nli s9, 0\nli s10, 0\nli s11, 0\nli t3, 0\nli t4, 0\nli t5, 0\nli t6, 0\n"
/* All registers are in use: that of what is given is kept in one of floats. */
#define IATTENTION_FOURS_S8_ALL                                                                                        \
    "a1", "a2", "a3", "a4", "a5", "a6", "a7", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10",       \
        "s11", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "ra", "ft0", "memory"

/* Four queries, and some fours of keys. The assembler text below knows where each member is. */
struct iattention_fours_s8_keys {
    const int8_t *queries;
    int32_t step, back;
    const int8_t *keys;
    int32_t row, row_back, words, next_keys;
    int32_t mul, shift;
    int16_t *scores;
    int32_t next_query, next_scores; /* from the third score of a query, and from behind the last one's */
    int32_t fours, tops[4];
};

/* Two pairs of scores of a query: p.addRNr, p.clip, pv.pack, p.sw, also to addresses between words, pv.max.h. */
#define IATTENTION_FOURS_S8_SCORES(s0, s1, s2, s3, top)                                                                \
    "mul " s0 ", " s0 ", a1\nmul " s1 ", " s1 ", a1\nmul " s2 ", " s2 ", a1\nmul " s3 ", " s3 ", a1\n"                 \
    ".insn r 0x5B, 6, 0x20, " s0 ", x0, a2\n.insn r 0x5B, 6, 0x20, " s1 ", x0, a2\n"                                   \
    ".insn r 0x5B, 6, 0x20, " s2 ", x0, a2\n.insn r 0x5B, 6, 0x20, " s3 ", x0, a2\n"                                   \
    ".insn r 0x33, 1, 0x0A, " s0 ", " s0 ", x16\n.insn r 0x33, 1, 0x0A, " s1 ", " s1 ", x16\n"                         \
    ".insn r 0x33, 1, 0x0A, " s2 ", " s2 ", x16\n.insn r 0x33, 1, 0x0A, " s3 ", " s3 ", x16\n"                         \
    ".insn r 0x57, 0, 0x68, " s0 ", " s1 ", " s0 "\n.insn r 0x57, 0, 0x68, " s2 ", " s3 ", " s2 "\n"                   \
    ".insn s 0x2B, 2, " s0 ", 4(s0)\n.insn r 0x2B, 6, 0, s1, s0, " s2 "\n"                                             \
    ".insn r 0x57, 0, 0x18, " top ", " top ", " s0 "\n.insn r 0x57, 0, 0x18, " top ", " top ", " s2 "\n"

/* Scores of four queries and some fours of keys; the largest of two keys in turn are left in `tops`. The loop fits a core's
 * cache of 512 bytes. */
TW_APART void iattention_fours_s8_scores(struct iattention_fours_s8_keys *given) {
    register struct iattention_fours_s8_keys *keys __asm__("a0") = given;
    __asm__ volatile(
        ".option push\n.option rvc\nfmv.w.x ft0, a0\n1:\n" IATTENTION_FOURS_S8_ZEROS
        "lw s0, 0(a0)\nlw a1, 4(a0)\nlw a2, 8(a0)\nlw s1, 12(a0)\nlw ra, 16(a0)\nlw a3, 24(a0)\nlw a0, 20(a0)\n"
        ".balign 4\n.option norvc\n" IATTENTION_FOURS_S8_WORDS(
            TW_SDOT_S8) ".option rvc\nfmv.x.w a0, ft0\nlw a1, 32(a0)\nlw a2, 36(a0)\nlw s0, 40(a0)\nlw s1, 44(a0)\n"
                        "lw a3, 56(a0)\nlw a4, 60(a0)\nlw a5, 64(a0)\nlw t0, 68(a0)\n" IATTENTION_FOURS_S8_SCORES(
                            "a6", "a7", "s2", "s3", "a3") IATTENTION_FOURS_S8_SCORES("s4", "s5", "s6", "s7", "a4")
                            IATTENTION_FOURS_S8_SCORES("s8", "s9", "s10", "s11", "a5") IATTENTION_FOURS_S8_SCORES(
                                "t3", "t4", "t5", "t6",
                                "t0") "sw a3, 56(a0)\nsw a4, 60(a0)\nsw a5, 64(a0)\nsw t0, 68(a0)\n"
                                      "lw a1, 12(a0)\nlw a2, 28(a0)\nlw a3, 52(a0)\nlw a4, 48(a0)\nadd a1, a1, a2\nadd "
                                      "s0, s0, a4\n"
                                      "addi a3, a3, -1\nsw a1, 12(a0)\nsw s0, 40(a0)\nsw a3, 52(a0)\nbnez a3, "
                                      "1b\n.option pop\n"
        :
        : "r"(keys)
        : IATTENTION_FOURS_S8_ALL);
}

/* Those of keys that are `row` bytes apart. What fours leave is a four that ends where the keys do; of fewer keys in all
 * each stands for four, and is written over by the one behind it. */
TW_APART void iattention_fours_s8_cache(struct iattention_fours_s8_keys *keys, const int8_t *k, int row, int count) {
    int16_t *const scores = keys->scores;
    const int few = count < 4, across = few ? 0 : row, runs = few ? count : 1 + ((count & 3) != 0);
    keys->row = across, keys->row_back = 4 - 3 * across, keys->next_keys = 4 * across;
    TW_UNROLL_BY(1)
    for (int run = 0; run < runs; run++) {
        const int from = few ? run : run * (count - 4);
        keys->keys = k + from * row, keys->scores = scores + from, keys->fours = few || run ? 1 : count >> 2;
        iattention_fours_s8_scores(keys);
    }
}

/* Weights of four queries and values of four channels, those of the cache and new ones: words, and how far it is from a row
 * to the next one, and from the last one to the next word of the first. The assembler text below knows where each is. */
struct iattention_fours_s8_tile {
    struct {
        const uint8_t *weights;
        const int8_t *values;
        int32_t back, row, row_back, words;
    } parts[2];
    int32_t step, *sums, pitch;
};

#define IATTENTION_FOURS_S8_PART(weights, values, back, row, row_back, words)                                          \
    "lw a3, " words "(a0)\nbeqz a3, 1f\nlw s0, " weights "(a0)\nlw s1, " values "(a0)\nlw a2, " back                   \
    "(a0)\nlw ra, " row "(a0)\nlw a0, " row_back                                                                       \
    "(a0)\n.balign 4\n.option norvc\n" IATTENTION_FOURS_S8_WORDS(TW_SDOT_U8) ".option rvc\nfmv.x.w a0, ft0\n1:\n"

/* sums[i * pitch + j] of four queries and four channels. */
static inline __attribute__((always_inline)) void
iattention_fours_s8_channels(const struct iattention_fours_s8_tile *given) {
    register const struct iattention_fours_s8_tile *tile __asm__("a0") = given;
    __asm__ volatile(".option push\n.option rvc\nfmv.w.x ft0, a0\nlw a1, 48(a0)\n" IATTENTION_FOURS_S8_ZEROS
                         IATTENTION_FOURS_S8_PART("0", "4", "8", "12", "16", "20") IATTENTION_FOURS_S8_PART(
                             "24", "28", "32", "36", "40",
                             "44") "lw s0, 52(a0)\nlw s1, 56(a0)\n"
                                   "sw a6, 0(s0)\nsw a7, 4(s0)\nsw s2, 8(s0)\nsw s3, 12(s0)\nadd s0, s0, s1\n"
                                   "sw s4, 0(s0)\nsw s5, 4(s0)\nsw s6, 8(s0)\nsw s7, 12(s0)\nadd s0, s0, s1\n"
                                   "sw s8, 0(s0)\nsw s9, 4(s0)\nsw s10, 8(s0)\nsw s11, 12(s0)\nadd s0, s0, s1\n"
                                   "sw t3, 0(s0)\nsw t4, 4(s0)\nsw t5, 8(s0)\nsw t6, 12(s0)\n.option pop\n"
                     :
                     : "r"(tile)
                     : IATTENTION_FOURS_S8_ALL);
}

/* sums[i * D + d] of four queries: weights, `step` bytes from one query to the next, times values of L keys of the cache,
 * and times those of some words of new keys. */
TW_APART void iattention_fours_s8_sums(const uint8_t *weights, int step, const int8_t *v, int row, int L,
                                       const int8_t *own, int own_row, int words, int D, int32_t *sums) {
    struct iattention_fours_s8_tile tile = {
        {{weights, v, 4 - 3 * step, row, 4 - 3 * row, L >> 2},
         {weights + (L + 3) / 4 * 4, own, 4 - 3 * step, own_row, 4 - 3 * own_row, words}},
        step,
        sums,
        4 * D};
    TW_UNROLL_BY(1)
    for (int d = 0; d < D; d += 4) {
        iattention_fours_s8_channels(&tile);
        tile.parts[0].values += 4 * row, tile.parts[1].values += 4 * own_row, tile.sums += 4;
    }
    TW_UNROLL_BY(1)
    for (int l = L & ~3; l < L; l++) { /* nothing is read that is not there */
        TW_UNROLL_BY(1)
        for (int d = 0; d < D; d++) {
            TW_UNROLL_BY(1)
            for (int i = 0; i < 4; i++)
                sums[i * D + d] += weights[i * step + l] * v[d * row + l];
        }
    }
}

/* 2^(31 + k) / total, rounded up to the next integer, with 2^k >= total: values up to 2^31 times it are quotients, or below
 * zero one less. What is left of a division has 18 bits at most. */
static inline uint32_t iattention_fours_s8_inverse(uint32_t total, int k) {
    uint32_t found = (UINT32_C(1) << 31) / total;
    TW_KEEP(found); /* what is left of a division is no second one */
    uint32_t rest = (UINT32_C(1) << 31) - found * total;
    TW_UNROLL_BY(1)
    for (int left = k; left > 0;) {
        const int bits = tw_min(left, 14);
        rest <<= bits, left -= bits;
        uint32_t next = rest / total;
        TW_KEEP(next);
        found = (found << bits) + next, rest -= next * total;
    }
    return found + 1;
}

/* The results of a query: 64 times a sum over the total, rounded, then scaled. */
TW_APART void iattention_fours_s8_means(const int32_t *sums, uint32_t total, const int32_t *mul, int shift, int D,
                                        int8_t *y) {
    const int one = total < 2; /* of a total of 0 all sums are 0; with twice of all there is something to shift by */
    const uint32_t twice = one ? 2 : total, half = one ? 0 : total >> 1;
    const int k = tw_highest_bit(twice - 1) + 1;
    __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[D]", "26") TW_NEXT_WORD("t0", "%[x]")
                         TW_NEXT_WORD("t1", "%[mul]") "srai t2, t0, 31\nsll t0, t0, %[scale]\nadd t0, t0, %[half]\n"
                                                      ".insn r 0x33, 0, 0x21, t0, t2, %[both]\n" /* p.mac */
                                                      "mulhsu t0, t0, %[inverse]\nsra t0, t0, %[k]\nsub t0, t0, t2\n"
                                                      "mul t0, t0, t1\n"
                                                      /* p.addRNr, p.clip, p.sb */
                                                      ".insn r 0x5B, 6, 0x20, t0, x0, %[shift]\n"
                                                      ".insn r 0x33, 1, 0x0A, t0, t0, x8\n"
                                                      ".insn s 0x2B, 0, t0, 1(%[y])\n.option pop\n"
                     : [x] "+r"(sums), [mul] "+r"(mul), [y] "+r"(y)
                     : [D] "r"(D), [scale] "r"(6 + one), [half] "r"(half), [both] "r"(2 * half),
                       [inverse] "r"(iattention_fours_s8_inverse(twice, k)), [k] "r"(k - 1), [shift] "r"(shift)
                     : "t0", "t1", "t2", "memory");
}

static void iattention_fours_s8(const int8_t *Q, const int8_t *K, const int8_t *V, const int8_t *NK, const int8_t *NV,
                                const int32_t *score_mul, const uint8_t *table, const int32_t *mean_mul, int8_t *Y,
                                int H, int S, int L, int D, int K_s0, int K_s1, int V_s0, int V_s1, int Y_s0,
                                int table_n0, int score_shift, int mean_shift, int PART, int PARTS, void *scratch) {
    const int old = (L + 3) / 4 * 4, step = old + S, blocks = H * S / 4, last = table_n0 - 1;
    int32_t *const sums = scratch;
    int16_t *const scores = (int16_t *)(sums + 4 * D);
    uint8_t *const weights = (uint8_t *)(scores + 4 * step);
    for (int first = 0; first < blocks; first += PARTS) {
        /* There and back, because later ones see more. */
        const int block = first + (first / PARTS & 1 ? PARTS - 1 - PART : PART);
        if (block >= blocks)
            continue;
        const int head = 4 * block / S, s = 4 * block % S;
        const int8_t *const q = Q + 4 * block * D, *const k = NK + head * S * D;
        const int32_t none = (int32_t)0x80008000;
        struct iattention_fours_s8_keys keys = {.queries = q,
                                                .step = D,
                                                .back = 4 - 3 * D,
                                                .words = D / 4,
                                                .mul = score_mul[head],
                                                .shift = score_shift,
                                                .scores = scores,
                                                .next_query = 2 * step - 4,
                                                .next_scores = 8 - 8 * step,
                                                .tops = {none, none, none, none}};
        if (L > 0)
            iattention_fours_s8_cache(&keys, K + head * K_s0, K_s1, L);
        keys.keys = k, keys.row = D, keys.row_back = 4 - 3 * D, keys.next_keys = 4 * D, keys.scores = scores + old;
        keys.fours = s / 4;
        if (s > 0)
            iattention_fours_s8_scores(&keys);
        /* Of the last four keys each query sees one more than the one before. */
        const int32_t tops[4] = {keys.tops[0], keys.tops[1], keys.tops[2], keys.tops[3]};
        keys.fours = 1;
        iattention_fours_s8_scores(&keys);
        uint32_t total[4];
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
            /* Where whole words are in the cache, new ones follow. */
            total[i] = L < old ? tw_attention_weights(mine, L, top, table, last, to) : 0;
            const int from = L < old ? old : 0;
            total[i] += tw_attention_weights(mine + from, old - from + s + i + 1, top, table, last, to + from);
        }
        iattention_fours_s8_sums(weights, step, V + head * V_s0, V_s1, L, NV + head * D * S, S, s / 4 + 1, D, sums);
        TW_UNROLL_BY(1)
        for (int i = 0; i < 4; i++)
            iattention_fours_s8_means(sums + i * D, total[i], mean_mul + head * D, mean_shift, D,
                                      Y + (s + i) * Y_s0 + head * D);
    }
}
