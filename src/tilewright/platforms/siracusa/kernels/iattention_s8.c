/* ---
op: iAttention
types: {Q: int8, K: int8, V: int8, NK: int8, NV: int8, score_mul: int32, table: uint8, mean_mul: int32, Y: int8}
when: {D: "D % 4 == 0", L: "L + S <= 1024"}      # so that 64 times a sum fits 32 bits
strided: [K, V, Y]
scratch: "((L+3)//4 + (S+3)//4)*12 + 64"
# Four keys at a time, a weight for each key, values of four channels at a time, a quotient for each result. Queries of all
# heads take turns among the cores; what is left of them is shared by teams, whose cores have some keys and some channels.
cycles:
  keys: (KEYS := (ROUNDS := (H * S - (LEFT := H * S % PARTS)) // PARTS) * (SEEN := L + twos(S)) + some(LEFT) * steps(SEEN, (TEAM := PARTS // (LEFT + none(LEFT))))) * words(D)
  weights: KEYS
  values: (WORDS := ROUNDS * words(D) + some(LEFT) * steps(words(D), TEAM)) * fours(SEEN)
  results: WORDS
  rows: ROUNDS
  teams: some(LEFT)
--- */
#include "tilewright_kernel.h"
#include "tilewright_meet.h"

/* A score of 16 bits of a sum; p.clip. */
static inline int iattention_s8_score(int32_t sum, int32_t mul, int32_t half, int shift) {
    int score = (int32_t)((uint32_t)sum * (uint32_t)mul + (uint32_t)half) >> shift;
    __asm__(".insn r 0x33, 1, 0x0A, %0, %0, x16" : "+r"(score));
    return score;
}

/* Scores of all keys; returns the largest. */
TW_APART int iattention_s8_scores(const int8_t *q, const int8_t *k, int row, int D, int count, int32_t mul, int shift,
                                  int16_t *scores) {
    static const int32_t zero[4];
    const int32_t half = (int32_t)(UINT32_C(1) << shift >> 1);
    int top = -32768, l = 0;
    for (; l + 4 <= count; l += 4, k += 4 * row) {
        int32_t sums[4];
        TW_DOT_1X4(TW_SDOT_S8, q, k, row, D, zero, sums)
        const int s0 = iattention_s8_score(sums[0], mul, half, shift),
                  s1 = iattention_s8_score(sums[1], mul, half, shift),
                  s2 = iattention_s8_score(sums[2], mul, half, shift),
                  s3 = iattention_s8_score(sums[3], mul, half, shift);
        scores[l] = (int16_t)s0, scores[l + 1] = (int16_t)s1, scores[l + 2] = (int16_t)s2, scores[l + 3] = (int16_t)s3;
        top = tw_max(tw_max(top, s0), tw_max(s1, tw_max(s2, s3)));
    }
    TW_UNROLL_BY(1)
    for (; l < count; l++, k += row) {
        const int8_t *x = q, *y = k;
        int32_t sum = 0;
        __asm__ volatile(
            ".option push\n.option norvc\n" TW_REPEAT("%[words]", "8") TW_NEXT_WORD("t0", "%[x]")
                TW_NEXT_WORD("t1", "%[y]") "nop\n" TW_SDOT(TW_SDOT_S8, "%[sum]", "t0", "t1") ".option pop\n"
            : [sum] "+r"(sum), [x] "+r"(x), [y] "+r"(y)
            : [words] "r"(D / 4)
            : "t0", "t1", "memory");
        const int score = iattention_s8_score(sum, mul, half, shift);
        scores[l] = (int16_t)score;
        top = tw_max(top, score);
    }
    return top;
}

/* Weights of all keys, two at a time, and zeros up to a multiple of four; returns their sum. */
TW_APART int32_t iattention_s8_weights(const int16_t *scores, int count, int top, const uint8_t *table, int last,
                                       uint8_t *weights) {
    const int16_t *x = scores;
    uint8_t *y = weights;
    const int twos = count >> 1;
    if (twos)
        __asm__ volatile(
            ".option push\n.option norvc\n" TW_REPEAT(
                "%[twos]", "20") ".insn i 0x0B, 1, t0, 2(%[x])\n.insn i 0x0B, 1, t1, 2(%[x])\n"
                                 "sub t0, %[top], t0\nsub t1, %[top], t1\n"
                                 ".insn r 0x33, 4, 0x02, t0, t0, %[last]\n"
                                 ".insn r 0x33, 4, 0x02, t1, t1, %[last]\n"
                                 ".insn r 0x03, 7, 0x20, t0, %[table], t0\n"
                                 ".insn r 0x03, 7, 0x20, t1, %[table], t1\n"
                                 ".insn s 0x2B, 0, t0, 1(%[y])\n.insn s 0x2B, 0, t1, 1(%[y])\n.option pop\n"
            : [x] "+r"(x), [y] "+r"(y)
            : [twos] "r"(twos), [top] "r"(top), [last] "r"(last), [table] "r"(table)
            : "t0", "t1", "memory");
    if (count & 1)
        *y++ = table[tw_min(top - *x, last)];
    for (int l = count; l & 3; l++)
        *y++ = 0;
    int32_t total = 0;
    const uint8_t *w = weights;
    if (count) /* pv.sdotup.b */
        __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[fours]", "6") TW_NEXT_WORD(
                             "t0", "%[w]") "nop\n" TW_SDOT("0x50", "%[total]", "t0", "%[ones]") ".option pop\n"
                         : [total] "+r"(total), [w] "+r"(w)
                         : [fours] "r"((count + 3) >> 2), [ones] "r"(0x01010101)
                         : "t0", "memory");
    return total;
}

/* The last weights that no whole word has, at the end of a word of zeros. */
static inline uint32_t iattention_s8_rest(const uint8_t *weights, int count) {
    uint32_t rest = 0;
    for (int l = count & ~3; l < count; l++)
        rest = rest >> 8 | (uint32_t)weights[l] << 24;
    return rest;
}

/* sum + weights . v for the last four of a channel of values. */
static inline int32_t iattention_s8_last(int32_t sum, uint32_t weights, const int8_t *v) {
    uint32_t word;
    __asm__ volatile("lw %[word], 0(%[v])\n" TW_SDOT(TW_SDOT_U8, "%[sum]", "%[weights]", "%[word]")
                     : [sum] "+r"(sum), [word] "=&r"(word)
                     : [weights] "r"(weights), [v] "r"(v)
                     : "memory");
    return sum;
}

/* sum[0..3] = weights . v for four channels. What whole words leave is a word that ends where the channel does; `last` are
 * the weights that belong to it, and zeros for what has been added before. */
static inline void iattention_s8_channels(const uint8_t *weights, uint32_t last, const int8_t *v, int row, int count,
                                          int32_t *sum) {
    static const int32_t zero[4];
    if (count >= 4) {
        TW_DOT_1X4(TW_SDOT_U8, weights, v, row, count & ~3, zero, sum)
        if (count & 3)
            for (int i = 0; i < 4; i++)
                sum[i] = iattention_s8_last(sum[i], last, v + i * row + count - 4);
    } else {
        for (int i = 0; i < 4; i++) {
            sum[i] = 0;
            for (int l = 0; l < count; l++)
                sum[i] += weights[l] * v[i * row + l];
        }
    }
}

/* What a query found: scores and weights of keys, those of new ones apart, and the values that they are for. */
struct iattention_s8_query {
    int16_t *scores, *new_scores;
    uint8_t *weights, *new_weights;
    int32_t *tops, *totals; /* of each core that works on it */
    const int8_t *v, *own;
    const int32_t *mean_mul;
    int8_t *y;
    int v_row, L, S, seen, mean_shift;
};

/* The scratch memory of a core. */
static inline void iattention_s8_room(struct iattention_s8_query *x, void *scratch) {
    const int old = (x->L + 3) / 4 * 4, new = (x->S + 3) / 4 * 4;
    x->tops = scratch;
    x->totals = x->tops + TW_CORES_OF_CLUSTER;
    x->scores = (int16_t *)(x->totals + TW_CORES_OF_CLUSTER);
    x->new_scores = x->scores + old;
    x->weights = (uint8_t *)(x->new_scores + new);
    x->new_weights = x->weights + old;
}

/* Words [from, end) of a query's result. All are divided by the same number, so, as long as that is small enough, by a
 * product: n * m / 2^(31 + k) with 2^k >= total and m = 2^(31 + k) / total, rounded up, is right for n below 2^31. */
TW_APART void iattention_s8_results(const struct iattention_s8_query *x, int32_t total, int from, int end) {
    const uint32_t last = iattention_s8_rest(x->weights, x->L), half = (uint32_t)total >> 1;
    uint32_t m = 0;
    int k = 1;
    if (total > 1 && total <= 65536) {
        k = tw_highest_bit((uint32_t)total - 1) + 1;
        uint32_t first = (UINT32_C(1) << 31) / (uint32_t)total;
        TW_KEEP(first);
        const uint32_t rest = (UINT32_C(1) << 31) - first * (uint32_t)total;
        m = (first << k) + (rest << k) / (uint32_t)total + 1;
    }
    /* In registers: stores of bytes might change whatever is in memory. */
    const struct iattention_s8_query q = *x;
    const int8_t *own = q.own + 4 * from * q.S;
    const int32_t *mul = q.mean_mul + 4 * from;
    int8_t *y = q.y + 4 * from;
    const int32_t weight = q.new_weights[0], round = (int32_t)(UINT32_C(1) << q.mean_shift >> 1);
    for (int word = from; word < end; word++) {
        int32_t sums[4];
        iattention_s8_channels(q.weights, last, q.v + 4 * word * q.v_row, q.v_row, q.L, sums);
        TW_UNROLL_BY(1)
        for (int i = 0; i < 4; i++, own += q.S) {
            int32_t sum = sums[i] + weight * own[0];
            TW_UNROLL_BY(1)
            for (int s = 1; s < q.seen; s++)
                sum += q.new_weights[s] * own[s];
            const uint32_t n = (uint32_t)(sum < 0 ? -sum : sum) * 64 + half;
            const uint32_t size = m ? (uint32_t)((uint64_t)n * m >> 32) >> (k - 1) : total ? n / (uint32_t)total : 0;
            const uint32_t product = (sum < 0 ? -size : size) * (uint32_t)*mul++ + (uint32_t)round;
            *y++ = (int8_t)tw_clamp((int32_t)product >> q.mean_shift, -128, 127);
        }
    }
}

/* Where the first core of each team has its scratch memory. */
static __attribute__((section(".near"))) void *iattention_s8_teams[TW_CORES_OF_CLUSTER];

static void iattention_s8(const int8_t *Q, const int8_t *K, const int8_t *V, const int8_t *NK, const int8_t *NV,
                          const int32_t *score_mul, const uint8_t *table, const int32_t *mean_mul, int8_t *Y, int H,
                          int S, int L, int D, int K_s0, int K_s1, int V_s0, int V_s1, int Y_s0, int table_n0,
                          int score_shift, int mean_shift, int PART, int PARTS, void *scratch) {
    struct iattention_s8_query x = {.v_row = V_s1, .L = L, .S = S, .mean_shift = mean_shift};
    iattention_s8_room(&x, scratch);
    /* Queries take turns among the cores, there and back, because later ones see more. Of those that are left in the
     * end, each has a team of cores, which have a part of the keys each, and then of the values; they meet between. */
    for (int first = 0; first < H * S; first += PARTS) {
        const int team = first + PARTS <= H * S ? 1 : PARTS / (H * S - first), turn = PART / team, mate = PART % team;
        const int row = first + (team == 1 && first / PARTS & 1 ? PARTS - 1 - turn : turn), works = row < H * S;
        const int head = works ? row / S : 0, keys = (L + 4 * team - 1) / (4 * team) * 4, from = tw_min(mate * keys, L);
        const int count = works ? tw_min(keys, L - from) : 0, words = D / 4, share = (words + team - 1) / team;
        const int own = works && mate == team - 1; /* the new keys */
        x.seen = works ? row % S + 1 : 0;
        if (team > 1) {
            if (mate == 0)
                iattention_s8_teams[turn] = scratch;
            tw_meet_parts(PARTS);
            iattention_s8_room(&x, iattention_s8_teams[turn]);
        }
        const int8_t *const q = Q + row * D;
        int top = -32768;
        if (count)
            top = iattention_s8_scores(q, K + head * K_s0 + from * K_s1, K_s1, D, count, score_mul[head], score_shift,
                                       x.scores + from);
        if (own)
            top = tw_max(top, iattention_s8_scores(q, NK + head * S * D, D, D, x.seen, score_mul[head], score_shift,
                                                   x.new_scores));
        if (team > 1) {
            x.tops[mate] = top;
            tw_meet_parts(PARTS);
            for (int i = 0; i < team; i++)
                top = tw_max(top, x.tops[i]);
        }
        int32_t total = 0;
        if (count)
            total = iattention_s8_weights(x.scores + from, count, top, table, table_n0 - 1, x.weights + from);
        if (own)
            total += iattention_s8_weights(x.new_scores, x.seen, top, table, table_n0 - 1, x.new_weights);
        if (team > 1) {
            x.totals[mate] = total;
            tw_meet_parts(PARTS);
            total = 0;
            for (int i = 0; i < team; i++)
                total += x.totals[i];
        }
        x.v = V + head * V_s0;
        x.own = NV + head * D * S;
        x.mean_mul = mean_mul + head * D;
        x.y = Y + (row - head * S) * Y_s0 + head * D;
        if (works)
            iattention_s8_results(&x, total, tw_min(mate * share, words), tw_min(mate * share + share, words));
    }
}
