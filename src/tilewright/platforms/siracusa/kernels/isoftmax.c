/* ---
op: iSoftmax
types: {x: T, y: U}
T: [int8, uint8]
U: [uint8, uint16]
when:
  coeffA: "coeffA >= 0 and coeffB >= 0 and coeffC >= 0 and log2 >= 1"
  # All powers, their sums and their multiples fit 30 bits.
  n_levels: "n_levels*(coeffA*(coeffB+255)*(coeffB+255)+coeffC) < 1073741824"
  AXIS: "AXIS*(coeffA*(coeffB+255)*(coeffB+255)+coeffC) < 1073741824"
epilogue: row
# Powers of as many distances as occur; then rows, with their largest, sum and reciprocal. Where powers, sums or levels are large
# (WIDE), results are products of 64 bits. Where a row has more elements than FEW fours of powers, each of these has its
# result (BY distance). Otherwise they are looked up by level where levels are fewer than elements (TABLE), about n_levels
# by the share of elements near the largest; or else computed, by fours if there are as many.
cycles:
  powers: max(min(log2, n_levels), n_levels - steps(n_levels, AXIS))
  rows: OUTER
  elements: OUTER * AXIS
  wide: OUTER * AXIS * (WIDE := max(n_levels > 256, (PEAK := coeffA * max(coeffB*coeffB, (coeffB - log2)*(coeffB - log2)) + coeffC) >= 65536,
    AXIS*PEAK >= 16777216))
  distances: OUTER * (FEW := min(fours(n_levels), log2 * (some(PEAK) + some(whole_sixteens(PEAK))
    + some(whole_sixteens(whole_sixteens(PEAK))) + some(whole_sixteens(whole_sixteens(whole_sixteens(PEAK)))))))
    * (BY := unless(WIDE) * (FEW <= whole_eights(AXIS))) * (some(AXIS) + STEPS)
  looked_up: OUTER * AXIS * (TABLE := unless(WIDE + BY) * (AXIS*AXIS*log2 > n_levels*n_levels))
  computed: OUTER * unless(WIDE + BY + TABLE) * (some(whole_fours(AXIS)) * fours(AXIS) + none(whole_fours(AXIS)) * AXIS)
    * (some(AXIS) + STEPS)
  # Steps that read something at each element are computed there.
  behind: OUTER * AXIS * STEPS * some(LOADS)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef uint8_t U;
#endif

/* p.lb or p.lbu of the next element; pv.max.b or pv.maxu.b, pv.min.b or pv.minu.b. */
#define ISOFTMAX_NEXT(to) ".insn i 0x0B, %[byte], " to ", 1(%[x])\n"
#define ISOFTMAX_BYTE ((T)(-1) < 0 ? 0 : 4)
#define ISOFTMAX_MOST ((T)(-1) < 0 ? 0x18 : 0x1C)
#define ISOFTMAX_LEAST ((T)(-1) < 0 ? 0x10 : 0x14)
/* p.lw of the power of an element. */
#define ISOFTMAX_POWER(to, at) ".insn r 0x03, 7, 0x10, " to ", %[power], " at "\n"

/* Two words, from each the largest and the least byte. */
#define ISOFTMAX_PAIR                                                                                                  \
    TW_NEXT_WORD("t0", "%[x]")                                                                                         \
    TW_NEXT_WORD("t1", "%[x]")                                                                                         \
    ".insn r 0x57, 1, %[max], %[most], %[most], t0\n.insn r 0x57, 1, %[min], %[few], %[few], t0\n"                     \
    ".insn r 0x57, 1, %[max], %[most], %[most], t1\n.insn r 0x57, 1, %[min], %[few], %[few], t1\n"

/* The largest and the least element of a row. */
static inline int isoftmax_range(const T *x, int count, int *least) {
    int max = x[0], min = x[0];
    if (count >= 8) {
        uint32_t most, few;
        /* The last eight may begin with some of those before them. */
        __asm__ volatile(
            ".option push\n.option norvc\nlw %[most], 0(%[x])\nmv %[few], %[most]\n" TW_REPEAT("%[pairs]", "12")
                ISOFTMAX_PAIR "add %[x], %[x], %[back]\n" ISOFTMAX_PAIR "srli t0, %[most], 16\nsrli t1, %[few], 16\n"
                              ".insn r 0x57, 1, %[max], %[most], %[most], t0\n"
                              ".insn r 0x57, 1, %[min], %[few], %[few], t1\n"
                              "srli t0, %[most], 8\nsrli t1, %[few], 8\n"
                              ".insn r 0x57, 1, %[max], %[most], %[most], t0\n"
                              ".insn r 0x57, 1, %[min], %[few], %[few], t1\n"
                              ".option pop\n"
            : [x] "+r"(x), [most] "=&r"(most), [few] "=&r"(few)
            : [pairs] "r"(count >> 3), [back] "r"((count & 7) - 8), [max] "i"(ISOFTMAX_MOST), [min] "i"(ISOFTMAX_LEAST)
            : "t0", "t1", "memory");
        *least = (T)few;
        return (T)most;
    }
    for (int i = 1; i < count; i++) {
        max = tw_max(max, x[i]);
        min = tw_min(min, x[i]);
    }
    *least = min;
    return max;
}

/* e(d) = ((A * (p + B)^2 + C) >> z) with p = z * log2 - d, for distances d below the maximum: those of log2 distances, by
 * differences, and then the same again and again, each time shifted once more. They are written from the end of the table
 * to its start, from distance `begin` up to `end` at least. Returns how far it got. */
static int isoftmax_powers(uint32_t *table, int begin, int end, int coeffA, int coeffB, int coeffC, int log2) {
    uint32_t *to = table + 255 - begin;
    if (begin == 0) {
        int32_t value = coeffA * coeffB * coeffB + coeffC, step = coeffA * (2 * coeffB - 1);
        begin = tw_min(log2, 256);
        __asm__ volatile(
            ".option push\n.option norvc\n" TW_REPEAT("%[count]", "6") ".insn s 0x2B, 2, %[value], -4(%[to])\n"
                                                                       "sub %[value], %[value], %[step]\n"
                                                                       "sub %[step], %[step], %[twice]\n"
                                                                       ".option pop\n"
            : [to] "+&r"(to), [value] "+&r"(value), [step] "+&r"(step)
            : [count] "r"(begin), [twice] "r"(2 * coeffA)
            : "memory");
    }
    for (; log2 == 1 && begin < end; begin++)
        table[255 - begin] = table[256 - begin] >> 1;
    if (begin < end) {
        /* The next is loaded before this one is stored: another one. */
        const uint32_t *from = to + log2;
        __asm__ volatile(".option push\n.option norvc\n.insn i 0x0B, 2, t0, -4(%[from])\n" TW_REPEAT(
                             "%[count]", "6") "srli t1, t0, 1\n"
                                              ".insn i 0x0B, 2, t0, -4(%[from])\n"
                                              ".insn s 0x2B, 2, t1, -4(%[to])\n"
                                              ".option pop\n"
                         : [to] "+r"(to), [from] "+r"(from)
                         : [count] "r"(end - begin)
                         : "t0", "t1", "memory");
        begin = end;
    }
    return begin;
}

/* numerator * 2^bit / sum, rounded down, by long division in as few steps as 32 bits allow; sum is in [2^bit, 2^(bit + 1)).
 */
static uint32_t isoftmax_reciprocal(uint32_t numerator, uint32_t sum, int bit) {
    uint32_t quotient = numerator / sum;
    TW_KEEP(quotient); /* or what is left is another division */
    uint32_t rest = numerator - quotient * sum;
    for (int left = bit, step; left > 0; left -= step) {
        step = tw_min(left, 31 - bit);
        rest <<= step;
        uint32_t digit = rest / sum;
        TW_KEEP(digit);
        quotient = (quotient << step) + digit;
        rest -= digit * sum;
    }
    return quotient;
}

/* `power` is where that of an element 0 would be. */
static inline uint32_t isoftmax_sum(const char *power, const T *x, int count) {
    uint32_t sum = 0;
    if (count >= 2)
        __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[pairs]", "16") ISOFTMAX_NEXT("t0")
                             ISOFTMAX_NEXT("t1") "slli t0, t0, 2\nslli t1, t1, 2\n" ISOFTMAX_POWER("t0", "t0")
                                 ISOFTMAX_POWER("t1", "t1") "add %[sum], %[sum], t0\nadd %[sum], %[sum], t1\n"
                                                            ".option pop\n"
                         : [x] "+r"(x), [sum] "+r"(sum)
                         : [pairs] "r"(count >> 1), [power] "r"(power), [byte] "i"(ISOFTMAX_BYTE)
                         : "t0", "t1", "memory");
    if (count & 1)
        sum += *(const uint32_t *)(const void *)(power + 4 * x[0]);
    return sum;
}

/* power * factor >> (16 + shift) for powers below 2^16: p.muluN, p.mac. */
TW_INLINE int isoftmax_level(const char *power, int x, uint32_t factor, int shift) {
    const uint32_t value = *(const uint32_t *)(const void *)(power + 4 * x);
    uint32_t level;
    __asm__(".insn r 0x5B, 0, 0x10, %0, %1, %2\n.insn r 0x33, 0, 0x21, %0, %1, %3"
            : "=&r"(level)
            : "r"(value), "r"(factor), "r"(factor >> 16));
    return tw_within((int32_t)(level >> shift), 0, 255);
}

/* The same for pairs of a row, where each level has its result in a table. */
static inline void isoftmax_results(const char *power, const T *x, int count, uint32_t factor, int shift,
                                    const unsigned char *results, unsigned char *to) {
    if (count >= 2)
        __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[pairs]", "32") ISOFTMAX_NEXT("t0")
                             ISOFTMAX_NEXT("t1") "slli t0, t0, 2\nslli t1, t1, 2\n" ISOFTMAX_POWER("t0", "t0")
                                 ISOFTMAX_POWER("t1", "t1") ".insn r 0x5B, 0, 0x10, t2, t0, %[low]\n"
                                                            ".insn r 0x5B, 0, 0x10, t3, t1, %[low]\n"
                                                            ".insn r 0x33, 0, 0x21, t2, t0, %[high]\n"
                                                            ".insn r 0x33, 0, 0x21, t3, t1, %[high]\n"
                                                            "srl t2, t2, %[shift]\nsrl t3, t3, %[shift]\n"
                                                            ".insn r 0x03, 7, 0x20, t2, %[table], t2\n"
                                                            ".insn r 0x03, 7, 0x20, t3, %[table], t3\n"
                                                            ".insn s 0x2B, 0, t2, 1(%[to])\n"
                                                            ".insn s 0x2B, 0, t3, 1(%[to])\n.option pop\n"
                         : [x] "+r"(x), [to] "+r"(to)
                         : [pairs] "r"(count >> 1), [power] "r"(power), [low] "r"(factor), [high] "r"(factor >> 16),
                           [shift] "r"(shift), [table] "r"(results), [byte] "i"(ISOFTMAX_BYTE)
                         : "t0", "t1", "t2", "t3", "memory");
    if (count & 1)
        *to = results[isoftmax_level(power, x[0], factor, shift)];
}

/* The results of a row in which few powers differ: each distance has its own. `result` is where that of an element 0 would
 * be. */
static inline void isoftmax_spread(const unsigned char *result, const T *x, int count, unsigned char *to) {
    if (count >= 2)
        __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[pairs]", "12") ISOFTMAX_NEXT("t0")
                             ISOFTMAX_NEXT("t1") ".insn r 0x03, 7, 0x20, t0, %[result], t0\n"
                                                 ".insn r 0x03, 7, 0x20, t1, %[result], t1\n"
                                                 ".insn s 0x2B, 0, t0, 1(%[to])\n"
                                                 ".insn s 0x2B, 0, t1, 1(%[to])\n.option pop\n"
                         : [x] "+r"(x), [to] "+r"(to)
                         : [pairs] "r"(count >> 1), [result] "r"(result), [byte] "i"(ISOFTMAX_BYTE)
                         : "t0", "t1", "memory");
    if (count & 1)
        *to = result[x[0]];
}

/* The same for larger powers and more levels: the quotient value / sum is value * r / 2^(31 + b) for values up to 2^30, if
 * b is the place of the sum's highest bit and r = 2^(31 + b) / sum, rounded up: the error is below 1 / sum. */
static void isoftmax_wide_levels(const char *power, const T *x, int count, uint32_t twice, uint32_t reciprocal, int bit,
                                 U *to) {
    for (int i = 0; i < count; i++) {
        const uint32_t value = *(const uint32_t *)(const void *)(power + 4 * x[i]) * twice;
        to[i] = (U)((uint32_t)((uint64_t)value * reciprocal >> 32) >> bit);
    }
}

/* Powers below 2^16 with sums below 2^24 are divided in two products of 16 bits: level = power * f / 2^(24 + b) with
 * f = levels * 2^(24 + b) / sum, rounded up, where b is the place of the sum's highest bit. The error is below 1 / sum. */
static void isoftmax(const T *x, U *y, int OUTER, int AXIS, int coeffA, int coeffB, int coeffC, int log2, int n_levels,
                     const struct Epilogue *epilogue) {
    uint32_t powers[256];
    __typeof__(*y) results[sizeof *y == 1 ? 256 : 4] __attribute__((aligned(4)));
    U out[16];
    const struct Epilogue e = *epilogue;
    const int turned = coeffB - tw_min(log2 - 1, 255);
    const int top = coeffA * tw_max(coeffB * coeffB, turned * turned) + coeffC;
    const int narrow = sizeof(U) == 1 && n_levels <= 256 && top < 65536 && AXIS * top < 1 << 24;
    const int few = tw_min(log2 * (top ? tw_highest_bit((uint32_t)top) + 1 : 0), 256), fours = (few + 3) & ~3;
    /* Where each result depends on its level alone, and few powers differ, those of a row are computed once; otherwise each
     * level is stored once, when a row first has it. */
    const int alone = STORE_POINTWISE && sizeof *y == 1 && narrow;
    const int by_distance = alone && 2 * fours <= AXIS;
    int filled = 0, levels = 0;
    if (by_distance) {
        STORE_4(&e, results, 0, 0, 0, 0, 0, 0);
        tw_fill_words(results, *(const unsigned char *)results, 64);
    }
    for (int at = 0; at < OUTER * AXIS; at += AXIS, x += AXIS) {
        int least;
        const int max = isoftmax_range(x, AXIS, &least);
        if (max - least >= filled || (by_distance && !filled))
            filled = isoftmax_powers(powers, filled, tw_max(max - least + 1, by_distance ? fours : 0), coeffA, coeffB,
                                     coeffC, log2);
        const char *power = (const char *)powers + 4 * (255 - max);
        uint32_t sum = isoftmax_sum(power, x, AXIS);
        sum = sum ? sum : 1; /* then all powers are 0 */
        const int bit = tw_highest_bit(sum);
        const uint32_t numerator = narrow ? (uint32_t)(n_levels - 1) << 24 : UINT32_C(1) << 31;
        const uint32_t factor = isoftmax_reciprocal(numerator, sum, bit) + 1;
        int first = 0;
        for (int i = 256 - fours; i < 256 && by_distance; i += 4) {
            U level[4];
            TW_UNROLL for (int k = 0; k < 4; k++) level[k] =
                (U)isoftmax_level((const char *)powers, i + k, factor, bit + 8);
            STORE_4(&e, results, level[0], level[1], level[2], level[3], i, 0);
        }
        if (by_distance) {
            first = AXIS;
            isoftmax_spread((const unsigned char *)results + 255 - max, x, AXIS, (unsigned char *)y + at);
        }
        if (alone && !by_distance) {
            /* Not always that of the largest element: powers may rise again with the distance. */
            const int highest = isoftmax_level((const char *)&top, 0, factor, bit + 8);
            for (; levels <= highest && highest - levels < AXIS; levels++)
                STORE_1(&e, results, (U)levels, levels, 0);
            if (highest < levels) {
                first = AXIS;
                isoftmax_results(power, x, AXIS, factor, bit + 8, (const unsigned char *)results,
                                 (unsigned char *)y + at);
            }
        }
        for (; narrow && first < AXIS && (first + 4 <= AXIS || (STORE_AGAIN && AXIS >= 4)); first += 4) {
            U level[4];
            first = tw_min(first, AXIS - 4); /* the last four may begin with some of those before them */
            TW_UNROLL for (int i = 0; i < 4; i++) level[i] = (U)isoftmax_level(power, x[first + i], factor, bit + 8);
            STORE_4(&e, y, level[0], level[1], level[2], level[3], at + first, first);
        }
        for (int count; first < AXIS; first += count) {
            count = tw_min(16, AXIS - first);
            if (narrow) {
                for (int i = 0; i < count; i++)
                    out[i] = (U)isoftmax_level(power, x[first + i], factor, bit + 8);
            } else {
                isoftmax_wide_levels(power, x + first, count, 2 * (uint32_t)(n_levels - 1), factor, bit, out);
            }
            STORE(epilogue, y, out, at + first, 0, first, 1, count);
        }
    }
}
#undef ISOFTMAX_NEXT
#undef ISOFTMAX_BYTE
#undef ISOFTMAX_MOST
#undef ISOFTMAX_LEAST
#undef ISOFTMAX_POWER
#undef ISOFTMAX_PAIR
