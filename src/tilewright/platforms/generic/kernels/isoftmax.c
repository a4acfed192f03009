/* ---
op: iSoftmax
types: {x: T, y: U}
T: [int8, uint8]
U: [uint8, uint16]
when:
  coeffA: "coeffA >= 0 and coeffB >= 0 and coeffC >= 0"
  # All powers, their sums and their multiples fit 30 bits.
  n_levels: "n_levels*(coeffA*(coeffB+255)*(coeffB+255)+coeffC) < 1073741824"
  AXIS: "AXIS*(coeffA*(coeffB+255)*(coeffB+255)+coeffC) < 1073741824"
epilogue: row
# A table of powers, which is looked up twice for each element.
cycles:
  elements: OUTER * AXIS
  rows: OUTER
  behind: OUTER * AXIS * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef uint8_t U;
#endif

/* e(d) = ((A * (p + B)^2 + C) >> z) with p = z * log2 - d, for the 256 possible distances d below the maximum. Returns how
 * many there are up to the last that is not zero. */
static int isoftmax_powers(uint32_t *table, int coeffA, int coeffB, int coeffC, int log2) {
    int z = 0, base = coeffB, next = log2, reach = 0; /* base is z * log2 + B */
    for (int distance = 0; distance < 256; distance++) {
        if (distance == next && z < 31) {
            z++;
            base += log2;
            next += log2;
        }
        table[distance] = (uint32_t)(coeffA * (base - distance) * (base - distance) + coeffC) >> z;
        reach = table[distance] ? distance + 1 : reach;
    }
    return reach;
}

/* 2^(31 + bit) / sum, rounded down, by long division in as few steps as 32 bits allow; sum is in [2^bit, 2^(bit + 1)). */
static uint32_t isoftmax_reciprocal(uint32_t sum, int bit) {
    uint32_t quotient = (UINT32_C(1) << 31) / sum, rest = (UINT32_C(1) << 31) - quotient * sum;
    for (int left = bit, step; left > 0; left -= step) {
        step = tw_min(left, 31 - bit);
        rest <<= step;
        const uint32_t digit = rest / sum;
        quotient = (quotient << step) + digit;
        rest -= digit * sum;
    }
    return quotient;
}

/* The quotient value / sum is value * r / 2^(31 + b) for values up to 2^30, if b is the place of the sum's highest bit and
 * r = 2^(31 + b) / sum, rounded up: the error is below 1 / sum. */
static void isoftmax(const T *x, U *y, int OUTER, int AXIS, int coeffA, int coeffB, int coeffC, int log2, int n_levels,
                     const struct Epilogue *epilogue) {
    uint32_t powers[256];
    U levels[256], out[16];
    const int reach = isoftmax_powers(powers, coeffA, coeffB, coeffC, log2);
    const uint32_t *table = powers;
    uint32_t twice = 2 * (uint32_t)(n_levels - 1);
    U *level = levels, *to = out;
    TW_KEEP(table);
    TW_KEEP(twice);
    TW_KEEP(level);
    TW_KEEP(to);
    /* Long rows have each quotient computed only once. */
    const int once = reach <= AXIS / 2;
    if (once)
        memset(level, 0, sizeof levels);
    for (int outer = 0; outer < OUTER && AXIS > 0; outer++, x += AXIS) {
        int max = x[0], bit = 0;
        uint32_t sum = 0;
        TW_UNROLL_4 for (int i = 1; i < AXIS; i++) max = tw_max(max, x[i]);
        TW_UNROLL_4 for (int i = 0; i < AXIS; i++) sum += table[max - x[i]];
        while (sum >> bit > 1)
            bit++;
        /* Without a sum all powers are 0. */
        const uint32_t reciprocal = isoftmax_reciprocal(sum ? sum : 1, bit) + 1;
        for (int i = 0; i < reach && once; i++)
            level[i] = (U)((uint32_t)((uint64_t)(table[i] * twice) * reciprocal >> 32) >> bit);
        for (int first = 0; first < AXIS; first += 16) {
            const int count = tw_min(16, AXIS - first);
            const T *from = x + first;
            if (once) {
                TW_UNROLL_4 for (int i = 0; i < count; i++) to[i] = level[max - from[i]];
            } else {
                TW_UNROLL_4 for (int i = 0; i < count; i++) {
                    const uint32_t value = table[max - from[i]] * twice;
                    to[i] = (U)((uint32_t)((uint64_t)value * reciprocal >> 32) >> bit);
                }
            }
            STORE(epilogue, y, to, (ptrdiff_t)outer * AXIS + first, 0, first, 1, count);
        }
    }
}
