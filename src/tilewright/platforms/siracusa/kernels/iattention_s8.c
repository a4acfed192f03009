/* ---
op: iAttention
types: {Q: int8, K: int8, V: int8, NK: int8, NV: int8, score_mul: int32, table: uint8, mean_mul: int32, Y: int8}
when: {D: "D % 4 == 0", S: "== 1", L: "L < 1024"}      # so that 64 times a sum fits 32 bits
strided: [K, V, Y]
awaits: [V, NV]
scratch: "L//4*12 + 12 + 64 + 4*D"
# Eight keys at a time, a weight for each key, values of four channels at a time, a quotient for each result. Heads take
# turns among the cores; what is left of them is shared by teams, whose cores have some keys and some channels.
cycles:
  keys: (KEYS := (ROUNDS := (H - (LEFT := H % PARTS)) // PARTS) * (SEEN := L + 1) + some(LEFT) * steps(SEEN, (TEAM := PARTS // (LEFT + none(LEFT))))) * words(D)
  weights: KEYS
  values: (WORDS := ROUNDS * words(D) + some(LEFT) * steps(words(D), TEAM)) * fours(SEEN)
  results: WORDS
  rows: ROUNDS
  teams: some(LEFT)
--- */
#include "tilewright_attention.h"
#include "tilewright_meet.h"

/* A product of the next word of the query and that of a key; what is loaded is that of a later key. */
#define IATTENTION_S8_LOAD(to, step) ".insn r 0x0B, 7, 0x10, " to ", %[k], %[" step "]\n"
#define IATTENTION_S8_NEXT(sum, word, step) TW_SDOT(TW_SDOT_S8, "%[" sum "]", "t0", word) IATTENTION_S8_LOAD(word, step)

/* Two scores: p.addRNr, p.clip, pv.pack, p.sw, also to addresses between words, pv.max.h. */
#define IATTENTION_S8_PAIR(first, second)                                                                              \
    "mul %[" first "], %[" first "], %[mul]\nmul %[" second "], %[" second "], %[mul]\n"                               \
    ".insn r 0x5B, 6, 0x20, %[" first "], x0, %[shift]\n.insn r 0x5B, 6, 0x20, %[" second "], x0, %[shift]\n"          \
    ".insn r 0x33, 1, 0x0A, %[" first "], %[" first "], x16\n.insn r 0x33, 1, 0x0A, %[" second "], %[" second          \
    "], x16\n"                                                                                                         \
    ".insn r 0x57, 0, 0x68, %[" first "], %[" second "], %[" first "]\n.insn s 0x2B, 2, %[" first "], 4(%[to])\n"      \
    ".insn r 0x57, 0, 0x18, %[tops], %[tops], %[" first "]\n"

/* Scores of some keys and, where it is not NULL, of a further one; returns the largest. Eight keys are taken at once, the
 * last ones once more if fewer are left. */
TW_APART int iattention_s8_scores(const int8_t *q, const int8_t *k, int row, int D, int count, const int8_t *own,
                                  int32_t mul, int shift, int16_t *scores) {
    int32_t tops = (int32_t)0x80008000;
    const int8_t *y = k;
    int16_t *to = scores;
    int eights = count >> 3, rest = eights ? count & 7 : 0;
    while (eights) {
        int32_t s0, s1, s2, s3, s4, s5, s6, s7;
        /* Of two loops the outer one is all of it. */
        __asm__ volatile(".option push\n.option norvc\n.insn i 0x7B, 4, x1, %[eights], 128\nmv t3, %[q]\n"
                         "li %[s0], 0\nli %[s1], 0\nli %[s2], 0\nli %[s3], 0\nli %[s4], 0\nli %[s5], 0\nli %[s6], "
                         "0\nli %[s7], 0\n" TW_REPEAT("%[words]", "34") TW_NEXT_WORD("t0", "t3") IATTENTION_S8_LOAD(
                             "t1", "row") IATTENTION_S8_LOAD("t2", "row") IATTENTION_S8_NEXT("s0", "t1", "row")
                             IATTENTION_S8_NEXT("s1", "t2", "row") IATTENTION_S8_NEXT("s2", "t1", "row")
                                 IATTENTION_S8_NEXT("s3", "t2", "row") IATTENTION_S8_NEXT("s4", "t1", "row")
                                     IATTENTION_S8_NEXT("s5", "t2", "back") TW_SDOT(TW_SDOT_S8, "%[s6]", "t0", "t1")
                                         TW_SDOT(TW_SDOT_S8, "%[s7]", "t0", "t2") IATTENTION_S8_PAIR("s0", "s1")
                                             IATTENTION_S8_PAIR("s2", "s3") IATTENTION_S8_PAIR("s4", "s5")
                                                 IATTENTION_S8_PAIR("s6", "s7") "add %[k], %[k], %[next]\n.option pop\n"
                         : [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3), [s4] "=&r"(s4),
                           [s5] "=&r"(s5), [s6] "=&r"(s6), [s7] "=&r"(s7), [k] "+r"(y), [to] "+r"(to), [tops] "+r"(tops)
                         : [eights] "r"(eights), [q] "r"(q), [words] "r"(D / 4), [row] "r"(row),
                           [back] "r"(4 - 7 * row), [next] "r"(8 * row - D), [mul] "r"(mul), [shift] "r"(shift)
                         : "t0", "t1", "t2", "t3", "memory");
        eights = rest > 0;
        if (rest)
            y += (rest - 8) * row, to += rest - 8;
        rest = 0;
    }
    int top = tw_max(tops >> 16, (int16_t)tops), l = (int)(to - scores);
    TW_UNROLL_BY(1)
    for (; l < count || own; l++, y += row) {
        const int8_t *x = q, *z = l < count ? y : own;
        int32_t sum = 0;
        __asm__ volatile(
            ".option push\n.option norvc\n" TW_REPEAT("%[words]", "8") TW_NEXT_WORD("t0", "%[x]")
                TW_NEXT_WORD("t1", "%[z]") "nop\n" TW_SDOT(TW_SDOT_S8, "%[sum]", "t0", "t1") ".option pop\n"
            : [sum] "+r"(sum), [x] "+r"(x), [z] "+r"(z)
            : [words] "r"(D / 4)
            : "t0", "t1", "memory");
        const int score = (int16_t)tw_attention_pair(sum, sum, mul, shift);
        scores[l] = (int16_t)score;
        top = tw_max(top, score);
        if (l >= count)
            own = NULL;
    }
    for (; l & 3; l++) /* nothing is read that is not there */
        scores[l] = 0;
    return top;
}

/* sums[0..4 * words) = weights . v, a channel each. What whole words leave is a word that ends where the channel does; its
 * weights are zeros for what has been added before. */
TW_APART void iattention_s8_sums(const uint8_t *weights, const int8_t *v, int row, int count, int words,
                                 int32_t *sums) {
    uint32_t last = 0; /* sums begin with the same value: "+&r" keeps them out of its register */
    TW_UNROLL_BY(1)
    for (int l = count & ~3; l < count; l++)
        last = last >> 8 | (uint32_t)weights[l] << 24;
    TW_UNROLL_BY(1)
    for (; words > 0; words--, v += 4 * row, sums += 4) {
        int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        if (count >= 4) {
            const void *w = weights, *x = v;
            __asm__ volatile(
                ".option push\n.option norvc\n" TW_REPEAT("%[words]", "18") TW_NEXT_WORD("t0", "%[w]")
                    IATTENTION_S8_LOAD("t1", "row") IATTENTION_S8_LOAD("t2", "row") IATTENTION_S8_LOAD("t3", "row")
                        IATTENTION_S8_LOAD("t4", "back") TW_SDOT(TW_SDOT_U8, "%[s0]", "t0", "t1")
                            TW_SDOT(TW_SDOT_U8, "%[s1]", "t0", "t2") TW_SDOT(TW_SDOT_U8, "%[s2]", "t0", "t3")
                                TW_SDOT(TW_SDOT_U8, "%[s3]", "t0", "t4") "add %[k], %[k], %[rest]\n" IATTENTION_S8_LOAD(
                                    "t1", "row") IATTENTION_S8_LOAD("t2", "row") IATTENTION_S8_LOAD("t3", "row")
                                    IATTENTION_S8_LOAD("t4", "row") TW_SDOT(TW_SDOT_U8, "%[s0]", "%[last]", "t1")
                                        TW_SDOT(TW_SDOT_U8, "%[s1]", "%[last]", "t2")
                                            TW_SDOT(TW_SDOT_U8, "%[s2]", "%[last]", "t3")
                                                TW_SDOT(TW_SDOT_U8, "%[s3]", "%[last]", "t4") ".option pop\n"
                : [s0] "+&r"(s0), [s1] "+&r"(s1), [s2] "+&r"(s2), [s3] "+&r"(s3), [w] "+&r"(w), [k] "+&r"(x)
                : [words] "r"(count >> 2), [row] "r"(row), [back] "r"(4 - 3 * row), [rest] "r"((count & 3) - 4),
                  [last] "r"(last)
                : "t0", "t1", "t2", "t3", "t4", "memory");
        } else {
            TW_UNROLL_BY(1)
            for (int l = 0; l < count; l++) {
                s0 += weights[l] * v[l];
                s1 += weights[l] * v[row + l];
                s2 += weights[l] * v[2 * row + l];
                s3 += weights[l] * v[3 * row + l];
            }
        }
        sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
    }
}

/* Some results: 64 times the mean, rounded, then scaled. What the sum times UINT32_MAX / total finds is the quotient or one
 * less. */
static inline __attribute__((always_inline)) void iattention_s8_means(const int32_t *sums, const int8_t *own,
                                                                      int weight, uint32_t total, const int32_t *mul,
                                                                      int shift, int count, int8_t *y) {
    if (count <= 0)
        return;
    /* p.lb, p.mac, p.msu, p.addRNr, p.clip, p.sb */
    __asm__ volatile(
        ".option push\n.option norvc\n" TW_REPEAT("%[count]", "38")
            TW_NEXT_WORD("t0", "%[sums]") ".insn i 0x0B, 0, t1, 1(%[own])\n" TW_NEXT_WORD(
                "t2", "%[mul]") ".insn r 0x33, 0, 0x21, t0, t1, %[weight]\n"
                                "srai t3, t0, 31\nxor t0, t0, t3\nsub t0, t0, t3\nslli t0, t0, 6\nadd t0, t0, %[half]\n"
                                "mulhu t1, t0, %[inverse]\n.insn r 0x33, 1, 0x21, t0, t1, %[total]\n"
                                "sltu t0, %[below], t0\nadd t1, t1, t0\nxor t1, t1, t3\nsub t1, t1, t3\n"
                                "mul t1, t1, t2\n.insn r 0x5B, 6, 0x20, t1, x0, %[shift]\n"
                                ".insn r 0x33, 1, 0x0A, t1, t1, x8\n.insn s 0x2B, 0, t1, 1(%[y])\n.option pop\n"
        : [sums] "+r"(sums), [own] "+r"(own), [mul] "+r"(mul), [y] "+r"(y)
        : [count] "r"(count), [weight] "r"(weight), [half] "r"(total >> 1), [inverse] "r"(UINT32_MAX / total),
          [total] "r"(total), [below] "r"(total - 1), [shift] "r"(shift)
        : "t0", "t1", "t2", "t3", "memory");
}

/* Where the first core of each team has its scratch memory. */
static __attribute__((section(".near"))) int32_t *iattention_s8_teams[TW_CORES_OF_CLUSTER];

/* Each core of a team leaves a number for the others. */
TW_APART void iattention_s8_meet(int32_t *numbers, int mate, int number, int parts, int opened) {
    numbers[mate] = number;
    if (opened)
        tw_meet_opened(parts);
    else
        tw_meet_parts(parts);
}

static void iattention_s8(const int8_t *Q, const int8_t *K, const int8_t *V, const int8_t *NK, const int8_t *NV,
                          const int32_t *score_mul, const uint8_t *table, const int32_t *mean_mul, int8_t *Y, int H,
                          int L, int D, int K_s0, int K_s1, int V_s0, int V_s1, int table_n0, int score_shift,
                          int mean_shift, int PART, int PARTS, int AWAITS, void *scratch) {
    int32_t *tops = scratch;
    /* Heads take turns among the cores. Of those that are left in the end, each has a team of cores, which have a part of
     * the keys each, and then of the values; they meet between. The new key is behind those of the cache. */
    for (int first = 0; first < H; first += PARTS) {
        const int team = first + PARTS <= H ? 1 : PARTS / (H - first), turn = PART / team, mate = PART % team;
        const int head = first + turn, works = head < H, share = (L + 4 * team) / (4 * team) * 4;
        const int from = mate * share, count = works ? tw_max(tw_min(share, L + 1 - from), 0) : 0;
        if (team > 1) {
            if (mate == 0)
                iattention_s8_teams[turn] = tops;
            tw_meet_parts(PARTS);
            tops = iattention_s8_teams[turn];
        }
        int32_t *const totals = tops + TW_CORES_OF_CLUSTER;
        int32_t *const sums = (int32_t *)scratch + 2 * TW_CORES_OF_CLUSTER;
        int16_t *const scores = (int16_t *)(totals + TW_CORES_OF_CLUSTER + D);
        uint8_t *const weights = (uint8_t *)(scores + L / 4 * 4 + 4);
        int top = -32768;
        if (count > 0)
            top = iattention_s8_scores(Q + head * D, K + head * K_s0 + from * K_s1, K_s1, D, tw_min(count, L - from),
                                       from + count > L ? NK + head * D : NULL, score_mul[head], score_shift,
                                       scores + from);
        if (team > 1) {
            iattention_s8_meet(tops, mate, top, PARTS, 0);
            TW_UNROLL_BY(1)
            for (int i = 0; i < team; i++)
                top = tw_max(top, tops[i]);
        }
        uint32_t total = tw_attention_weights(scores + from, count, top, table, table_n0 - 1, weights + from);
        const int awaits = AWAITS && first == 0; /* values */
        if (team > 1 || awaits) {
            iattention_s8_meet(totals, mate, (int)total, PARTS, awaits);
            total = 0;
            TW_UNROLL_BY(1)
            for (int i = 0; i < team; i++)
                total += (uint32_t)totals[i];
        }
        if (!works)
            continue;
        total += !total; /* sums are 0 then */
        const int words = (D / 4 + team - 1) / team, word = mate * words, channel = head * D + 4 * word,
                  channels = 4 * tw_min(words, D / 4 - word), weight = weights[L];
        iattention_s8_sums(weights, V + head * V_s0 + 4 * word * V_s1, V_s1, L, channels / 4, sums);
        iattention_s8_means(sums, NV + channel, weight, total, mean_mul + channel, mean_shift, channels, Y + channel);
    }
}
