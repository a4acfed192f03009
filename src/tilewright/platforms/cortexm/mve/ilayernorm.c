/* ---
op: iLayerNorm
types: {x: T, weight: int32, bias: int32, y: U}
T: [int8, uint8]
U: [int8, int16, int32]
when: {AXIS: "<= 32768"}      # so that the sum of squares fits 32 bits
epilogue: lanes
cycles:
  eights: OUTER * eights(AXIS)
  lanes: OUTER * whole_fours(AXIS)
  single: OUTER * left_of_fours(AXIS)
  rows: OUTER
  weights: AXIS
  behind: OUTER * AXIS * FUSED
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

/* The lowest bits, as numbers of type U. */
TW_INLINE tw_lanes wrapped(tw_lanes x) {
    const int above = 32 - 8 * (int)sizeof(U);
    return above ? vshlq_r_s32(vshlq_r_s32(x, above), -above) : x;
}

static void ilayernorm(const T *x, const int32_t *weight, const int32_t *bias, U *y, int OUTER, int AXIS, int D,
                       const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    /* Then products with x - mean fit 31 bits, and sums with the bias 32. */
    const int narrow = tw_below(weight, AXIS, 1 << 22) && tw_below(bias, AXIS, 1 << 30);
    int shift = 0;
    while (D >> (shift + 1))
        shift++;
    for (int outer = 0; outer < OUTER; outer++, x += AXIS) {
        int32_t sum = 0, squares = 0;
        int i;
        for (i = 0; i < AXIS; i += 8) {
            const mve_pred16_t some = vctp16q((uint32_t)(AXIS - i));
            sum = vaddvaq_p_s16(sum, TW_FOR_BYTES(x, tw_eight)(x + i, some), some);
        }
        const int32_t mean = sum / AXIS;
        for (i = 0; i < AXIS; i += 8) {
            const mve_pred16_t some = vctp16q((uint32_t)(AXIS - i));
            const int16x8_t values = vsubq_n_s16(TW_FOR_BYTES(x, tw_eight)(x + i, some), (int16_t)mean);
            squares = vmladavaq_p_s16(squares, values, values, some);
        }
        const int32_t deviation = tw_isqrt(squares / AXIS + 1);
        const uint32_t reciprocal = UINT32_MAX / (uint32_t)deviation;
        i = 0;
#if STORE_HAS_LANES
        for (; narrow && i + 4 <= AXIS; i += 4) {
            const tw_lanes product = vmulq_s32(vsubq_n_s32(tw_lanes_at(x + i), mean), vldrwq_s32(weight + i));
            const tw_lanes total = vaddq_s32(tw_lanes_divide(product, deviation, reciprocal), vldrwq_s32(bias + i));
            STORE_LANES(&e, y, wrapped(vshlq_r_s32(total, -shift)), outer * AXIS + i, i);
        }
#endif
        for (int left = narrow ? TW_LANES_REST(i, AXIS) : AXIS - i; left > 0; left--, i++) {
            const U value = (U)(((int64_t)(x[i] - mean) * weight[i] / deviation + bias[i]) >> shift);
            STORE(&e, y, &value, outer * AXIS + i, 0, i, 1, 1);
        }
    }
}
