/* ---
op: iRMSNorm
types: {x: T, weight: int32, y: U}
T: [int8, uint8]
U: [int8, int16, int32]
when: {AXIS: "<= 32768"}      # so that the sum of squares fits 32 bits
epilogue: row
# Squares four at a time, a root and two quotients for each row; each core has a part of the results of all rows. Large
# weights take products of 64 bits, and a quotient each.
cycles:
  squares: OUTER * words(AXIS)
  single_squares: OUTER * left_of_fours(AXIS)
  rows: OUTER
  results: (RESULTS := OUTER * min(AXIS, steps(fours(AXIS), PARTS) * 4))
  wide: RESULTS * (largest_weight >= 4194304)
  behind: RESULTS * FUSED
  call: some(OUTER)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

static inline int32_t irmsnorm_squares(const T *x, int count) {
    const int words = count >> 2;
    int32_t sum = 0;
    if (words) /* pv.sdotsp.b or pv.sdotup.b */
        __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[words]", "6")
                             TW_NEXT_WORD("t0", "%[x]") "nop\n"
                                                        ".insn r 0x57, 1, %[dot], %[sum], t0, t0\n.option pop\n"
                         : [x] "+r"(x), [sum] "+r"(sum)
                         : [words] "r"(words), [dot] "i"((T)(-1) < 0 ? 0x5C : 0x50)
                         : "t0", "memory");
    for (int i = 0; i < (count & 3); i++)
        sum += x[i] * x[i];
    return sum;
}

/* The root of a number below 2^24, rounded down: floats are exact up to there. */
static inline int32_t irmsnorm_root(int32_t n) {
    float root = (float)n;
    __asm__("fsqrt.s %0, %0" : "+f"(root));
    return (int32_t)root;
}

/* Division by d of values up to 2^30: value * m / 2^(31 + k) with 2^k >= d and m = 2^(31 + k) / d, rounded up to the next
 * integer, is right or, below zero, one too low. Then a shift to the right, and limits. */
TW_INLINE U irmsnorm_value(int32_t x, int32_t weight, uint32_t m, int k, int shift, int32_t top) {
    const int32_t twice = 2 * x * weight;
    int32_t quotient;
    __asm__("mulhsu %0, %1, %2" : "=r"(quotient) : "r"(twice), "r"(m));
    quotient = ((quotient >> k) + (int32_t)((uint32_t)twice >> 31)) >> shift;
    __asm__(".insn r 0x33, 5, 0x0A, %0, %0, %1" : "+r"(quotient) : "r"(top)); /* p.clipr */
    return (U)quotient;
}

/* The same for larger weights. */
TW_APART void irmsnorm_wide(const T *x, const int32_t *weight, U *out, int count, int32_t deviation, int shift,
                            int32_t top) {
    for (int i = 0; i < count; i++) {
        const int64_t value = ((int64_t)x[i] * weight[i] / deviation) >> shift;
        out[i] = (U)(value < -top - 1 ? -top - 1 : value > top ? top : value);
    }
}

/* Of each row the results from `from` on, a multiple of four, up to `end`. */
TW_INLINE void irmsnorm_rows(const T *x, const int32_t *weight, U *y, int OUTER, int AXIS, int from, int end, int shift,
                             int32_t top, int narrow, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    for (int outer = 0; outer < OUTER; outer++, x += AXIS) {
        const int32_t deviation = irmsnorm_root(irmsnorm_squares(x, AXIS) / AXIS + 1);
        const int k = deviation > 1 ? tw_highest_bit((uint32_t)deviation - 1) + 1 : 0;
        /* 2^(31 + k) / d in two steps */
        uint32_t first = (UINT32_C(1) << 31) / (uint32_t)deviation;
        TW_KEEP(first);
        const uint32_t rest = (UINT32_C(1) << 31) - first * (uint32_t)deviation;
        const uint32_t m = (first << k) + (rest << k) / (uint32_t)deviation + 1;
        const int at = outer * AXIS, whole = narrow ? end : from;
        /* Cores have few each, and code comes cold: four at a time take longer. */
        TW_UNROLL_BY(1)
        for (int i = from; i < whole; i++)
            STORE_1(&e, y, irmsnorm_value(x[i], weight[i], m, k, shift, top), at + i, i);
        for (int i = whole; i < end; i += 16) {
            U out[16];
            const int count = tw_min(16, end - i);
            irmsnorm_wide(x + i, weight + i, out, count, deviation, shift, top);
            STORE(epilogue, y, out, at + i, 0, i, 1, count);
        }
    }
}

static void irmsnorm(const T *x, const int32_t *weight, U *y, int OUTER, int AXIS, int D, int n_levels,
                     int largest_weight, int PART, int PARTS, const struct Epilogue *epilogue) {
    /* Then twice a product with x fits 32 bits. */
    const int narrow = largest_weight < 1 << 22;
    const int part = (AXIS + 4 * PARTS - 1) / (4 * PARTS) * 4, from = PART * part, end = tw_min(from + part, AXIS);
    if (from < end)
        irmsnorm_rows(x, weight, y, OUTER, AXIS, from, end, tw_highest_bit((uint32_t)D), n_levels / 2 - 1, narrow,
                      epilogue);
}
