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
epilogue: lanes
cycles:
  lanes: OUTER * whole_fours(AXIS)
  single: OUTER * left_of_fours(AXIS)
  rows: OUTER
  table: some(OUTER)
  behind: OUTER * AXIS * FUSED
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef uint8_t U;
#endif

/* e(d) = ((A * (p + B)^2 + C) >> z) with p = z * log2 - d, for the 256 possible distances d below the maximum. */
static void isoftmax_powers(uint32_t *table, int coeffA, int coeffB, int coeffC, int log2) {
    int z = 0, base = coeffB, next = log2; /* base is z * log2 + B */
    for (int distance = 0; distance < 256; distance++) {
        if (distance == next && z < 31) {
            z++;
            base += log2;
            next += log2;
        }
        table[distance] = (uint32_t)(coeffA * (base - distance) * (base - distance) + coeffC) >> z;
    }
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

TW_INLINE int largest(const T *x, int count) {
    const mve_pred16_t some = vctp8q((uint32_t)count);
    return (T)-1 < 0 ? vmaxvq_p_s8(-128, vldrbq_z_s8((const int8_t *)x, some), some)
                     : vmaxvq_p_u8(0, vldrbq_z_u8((const uint8_t *)x, some), some);
}

/* Powers of four neighbours. */
TW_INLINE uint32x4_t powers_of(const uint32_t *table, const T *x, int max) {
    const tw_lanes distance = vaddq_n_s32(vnegq_s32(tw_lanes_at(x)), max);
    return vldrwq_gather_shifted_offset_u32(table, vreinterpretq_u32_s32(distance));
}

/* The quotient value / sum is value * r / 2^(31 + b) for values up to 2^30, if b is the place of the sum's highest bit and
 * r = 2^(31 + b) / sum, rounded up: the error is below 1 / sum. */
static void isoftmax(const T *x, U *y, int OUTER, int AXIS, int coeffA, int coeffB, int coeffC, int log2, int n_levels,
                     const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const uint32_t twice = 2 * (uint32_t)(n_levels - 1);
    uint32_t table[256];
    isoftmax_powers(table, coeffA, coeffB, coeffC, log2);
    for (int outer = 0; outer < OUTER && AXIS > 0; outer++, x += AXIS) {
        int max = x[0], i;
        uint32_t sum = 0;
        for (i = 0; i < AXIS; i += 16)
            max = tw_max(max, largest(x + i, AXIS - i));
        for (i = 0; i + 4 <= AXIS; i += 4)
            sum = vaddvaq_u32(sum, powers_of(table, x + i, max));
        for (; i < AXIS; i++)
            sum += table[max - x[i]];
        /* Without a sum all powers are 0. */
        const int bit = sum ? 31 - __builtin_clz(sum) : 0;
        const uint32_t reciprocal = isoftmax_reciprocal(sum ? sum : 1, bit) + 1;
        i = 0;
#if STORE_HAS_LANES
        for (; i + 4 <= AXIS; i += 4) {
            const uint32x4_t value = vmulq_n_u32(powers_of(table, x + i, max), twice);
            const uint32x4_t quotient = vshlq_r_u32(vmulhq_u32(value, vdupq_n_u32(reciprocal)), -bit);
            STORE_LANES(&e, y, vreinterpretq_s32_u32(quotient), outer * AXIS + i, i);
        }
#endif
        for (int left = TW_LANES_REST(i, AXIS); left > 0; left--, i++) {
            const uint32_t value = table[max - x[i]] * twice;
            const U quotient = (U)((uint32_t)((uint64_t)value * reciprocal >> 32) >> bit);
            STORE(&e, y, &quotient, outer * AXIS + i, 0, i, 1, 1);
        }
    }
}
