/* ---
op: iRMSNorm
types: {x: T, weight: int32, y: U}
T: [int8, uint8]
U: [int8, int16, int32]
when: {AXIS: "<= 32768"}      # so that the sum of squares fits 32 bits
cycles: "OUTER*(100+AXIS*14)"
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

static void irmsnorm(const T *x, const int32_t *weight, U *y, int OUTER, int AXIS, int D, int n_levels) {
    const int64_t top = n_levels / 2 - 1;
    int shift = 0;
    while (D >> (shift + 1))
        shift++;
    for (int outer = 0; outer < OUTER; outer++, x += AXIS, y += AXIS) {
        int32_t squares = 0;
        for (int i = 0; i < AXIS; i++)
            squares += x[i] * x[i];
        const int32_t deviation = tw_isqrt(squares / AXIS + 1);
        for (int i = 0; i < AXIS; i++) {
            const int64_t value = ((int64_t)x[i] * weight[i] / deviation) >> shift;
            y[i] = (U)(value < -top - 1 ? -top - 1 : value > top ? top : value);
        }
    }
}
