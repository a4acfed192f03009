/* ---
op: iRMSNorm
types: {x: T, weight: int32, y: U}
T: [int8, uint8]
U: [int8, int16, int32]
when: {AXIS: "<= 32768"}      # so that the sum of squares fits 32 bits
epilogue: row
# Two loops over a row, one with quotients, and a root.
cycles:
  elements: OUTER * AXIS
  rows: OUTER
  behind: OUTER * AXIS * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

static void irmsnorm(const T *x, const int32_t *weight, U *y, int OUTER, int AXIS, int D, int n_levels,
                     const struct Epilogue *epilogue) {
    const int32_t top = n_levels / 2 - 1;
    const int narrow = tw_below(weight, AXIS, 1 << 23); /* then products with x fit 31 bits */
    int shift = 0;
    U out[16];
    while (D >> (shift + 1))
        shift++;
    for (int outer = 0; outer < OUTER; outer++, x += AXIS) {
        int32_t squares = 0;
        TW_UNROLL_4 for (int i = 0; i < AXIS; i++) squares += x[i] * x[i];
        const int32_t deviation = tw_isqrt(squares / AXIS + 1);
        const uint32_t reciprocal = UINT32_MAX / (uint32_t)deviation;
        for (int first = 0; first < AXIS; first += 16) {
            const int count = tw_min(16, AXIS - first);
            for (int i = 0; i < count; i++) {
                if (narrow) {
                    const int32_t value = tw_divide(x[first + i] * weight[first + i], deviation, reciprocal) >> shift;
                    out[i] = (U)tw_min(tw_max(value, -top - 1), top);
                } else {
                    const int64_t value = ((int64_t)x[first + i] * weight[first + i] / deviation) >> shift;
                    out[i] = (U)(value < -top - 1 ? -top - 1 : value > top ? top : value);
                }
            }
            STORE(epilogue, y, out, (ptrdiff_t)outer * AXIS + first, 0, first, 1, count);
        }
    }
}
