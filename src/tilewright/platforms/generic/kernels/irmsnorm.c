/* ---
op: iRMSNorm
types: {x: T, weight: int32, y: U}
T: [int8, uint8, int16, uint16, int32]
U: [int8, uint8, int16, uint16, int32]
U: [int8, int16, int32]
cycles: "OUTER*(100+AXIS*14)"
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

static void irmsnorm(const T *x, const int32_t *weight, U *y, int OUTER, int AXIS, int D, int n_levels) {
    const int64_t low = -n_levels / 2, high = n_levels / 2 - 1;
    int shift = 0;
    while (D >> (shift + 1))
        shift++;
    for (int outer = 0; outer < OUTER && AXIS > 0; outer++, x += AXIS, y += AXIS) {
        int64_t squares = 0;
        for (int i = 0; i < AXIS; i++)
            squares += (int64_t)x[i] * x[i];
        const int64_t deviation = tw_isqrt(squares / AXIS + 1);
        for (int i = 0; i < AXIS; i++) {
            const int64_t value = ((int64_t)x[i] * weight[i] / deviation) >> shift;
            y[i] = (U)(value < low ? low : value > high ? high : value);
        }
    }
}
