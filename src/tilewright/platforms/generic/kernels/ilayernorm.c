/* ---
op: iLayerNorm
types: {x: T, weight: int32, bias: int32, y: U}
T: [int8, uint8]
U: [int8, int16, int32]
when: {AXIS: "<= 32768"}      # so that the sum of squares fits 32 bits
epilogue: row
# Weights are looked at before all rows. Then three loops over a row, and a root.
cycles:
  weights: AXIS
  elements: OUTER * AXIS
  rows: OUTER
  shifted: SHIFTS * some(STEPS) * OUTER * AXIS
  behind: unless(SHIFTS) * OUTER * AXIS * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

static void ilayernorm(const T *x, const int32_t *weight, const int32_t *bias, U *y, int OUTER, int AXIS, int D,
                       const struct Epilogue *epilogue) {
    /* Then products with x - mean fit 31 bits, and sums with the bias 32. */
    const int narrow = tw_below(weight, AXIS, 1 << 22) && tw_below(bias, AXIS, 1 << 30);
    int shift = 0;
    U out[16];
    while (D >> (shift + 1))
        shift++;
    for (int outer = 0; outer < OUTER; outer++, x += AXIS) {
        int32_t sum = 0, squares = 0;
        TW_UNROLL_4 for (int i = 0; i < AXIS; i++) sum += x[i];
        const int32_t mean = sum / AXIS;
        TW_UNROLL_4 for (int i = 0; i < AXIS; i++) squares += (x[i] - mean) * (x[i] - mean);
        const int32_t deviation = tw_isqrt(squares / AXIS + 1);
        const uint32_t reciprocal = UINT32_MAX / (uint32_t)deviation;
        for (int first = 0; first < AXIS; first += 16) {
            const int count = tw_min(16, AXIS - first);
            for (int i = 0; i < count; i++) {
                const int at = first + i, centred = x[at] - mean;
                if (narrow)
                    out[i] = (U)((tw_divide(centred * weight[at], deviation, reciprocal) + bias[at]) >> shift);
                else
                    out[i] = (U)(((int64_t)centred * weight[at] / deviation + bias[at]) >> shift);
            }
            STORE(epilogue, y, out, (ptrdiff_t)outer * AXIS + first, 0, first, 1, count);
        }
    }
}
