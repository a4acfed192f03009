/* ---
op: iRMSNorm
types: {x: T, weight: int32, y: U}
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

static void irmsnorm(const T *x, const int32_t *weight, U *y, int OUTER, int AXIS, int D, int n_levels,
                     const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const int32_t top = n_levels / 2 - 1;
    const int narrow = tw_below(weight, AXIS, 1 << 23); /* then products with x fit 31 bits */
    int shift = 0;
    while (D >> (shift + 1))
        shift++;
    for (int outer = 0; outer < OUTER; outer++, x += AXIS) {
        int32_t squares = 0;
        int i;
        for (i = 0; i < AXIS; i += 8) {
            const mve_pred16_t some = vctp16q((uint32_t)(AXIS - i));
            const int16x8_t values = TW_FOR_BYTES(x, tw_eight)(x + i, some);
            squares = vmladavaq_p_s16(squares, values, values, some);
        }
        const int32_t deviation = tw_isqrt(squares / AXIS + 1);
        const uint32_t reciprocal = UINT32_MAX / (uint32_t)deviation;
        i = 0;
#if STORE_HAS_LANES
        for (; narrow && i + 4 <= AXIS; i += 4) {
            const tw_lanes product = vmulq_s32(tw_lanes_at(x + i), vldrwq_s32(weight + i));
            const tw_lanes value = vshlq_r_s32(tw_lanes_divide(product, deviation, reciprocal), -shift);
            STORE_LANES(&e, y, tw_lanes_clamp(value, -top - 1, top), outer * AXIS + i, i);
        }
#endif
        for (int left = narrow ? TW_LANES_REST(i, AXIS) : AXIS - i; left > 0; left--, i++) {
            const int64_t value = ((int64_t)x[i] * weight[i] / deviation) >> shift;
            const U limited = (U)(value < -top - 1 ? -top - 1 : value > top ? top : value);
            STORE(&e, y, &limited, outer * AXIS + i, 0, i, 1, 1);
        }
    }
}
