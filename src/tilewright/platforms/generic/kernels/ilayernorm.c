/* ---
op: iLayerNorm
types: {x: T, weight: int32, bias: int32, y: U}
T: [int8, uint8, int16, uint16, int32]
U: [int8, uint8, int16, uint16, int32]
U: [int8, int16, int32]
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
    for (int outer = 0; outer < OUTER && AXIS > 0; outer++, x += AXIS, y += AXIS) {
        int64_t sum = 0, squares = 0;
        for (int i = 0; i < AXIS; i++)
            sum += x[i];
        const int64_t mean = sum / AXIS;
        for (int i = 0; i < AXIS; i++)
            squares += (x[i] - mean) * (x[i] - mean);
        const int64_t deviation = tw_isqrt(squares / AXIS + 1);
        for (int i = 0; i < AXIS; i++)
            y[i] = (U)(((x[i] - mean) * weight[i] / deviation + bias[i]) >> shift);
    }
}
