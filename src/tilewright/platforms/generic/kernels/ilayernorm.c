/* ---
op: iLayerNorm
types: {x: T, weight: int32, bias: int32, y: U}
T: [int8, uint8]
U: [int8, int16, int32]
when: {AXIS: "<= 32768"}      # so that the sum of squares fits 32 bits
cycles: "OUTER*(100+AXIS*16)"
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

static void ilayernorm(const T *x, const int32_t *weight, const int32_t *bias, U *y, int OUTER, int AXIS, int D) {
    int shift = 0;
    while (D >> (shift + 1))
        shift++;
    for (int outer = 0; outer < OUTER; outer++, x += AXIS, y += AXIS) {
        int32_t sum = 0, squares = 0;
        for (int i = 0; i < AXIS; i++)
            sum += x[i];
        const int32_t mean = sum / AXIS;
        for (int i = 0; i < AXIS; i++)
            squares += (x[i] - mean) * (x[i] - mean);
        const int32_t deviation = tw_isqrt(squares / AXIS + 1);
        for (int i = 0; i < AXIS; i++) {
            const int64_t product = (int64_t)(x[i] - mean) * weight[i];
            y[i] = (U)((product / deviation + bias[i]) >> shift);
        }
    }
}
