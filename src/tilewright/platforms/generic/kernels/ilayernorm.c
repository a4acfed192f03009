/* ---
op: iLayerNorm
types: {x: T, weight: int32, bias: int32, y: int32}
T: [int8, uint8]
when: {AXIS: "<= 32768"}      # so that the sum of squares fits 32 bits
epilogue: row
cycles: "OUTER*(100+AXIS*16)"
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void ilayernorm(const T *x, const int32_t *weight, const int32_t *bias, void *y, int OUTER, int AXIS, int D,
                       const struct Epilogue *epilogue) {
    int32_t out[16];
    int shift = 0;
    while (D >> (shift + 1))
        shift++;
    for (int outer = 0; outer < OUTER; outer++) {
        const ptrdiff_t at = (ptrdiff_t)outer * AXIS;
        int32_t sum = 0, squares = 0;
        for (int i = 0; i < AXIS; i++)
            sum += x[at + i];
        const int32_t mean = sum / AXIS;
        for (int i = 0; i < AXIS; i++)
            squares += (x[at + i] - mean) * (x[at + i] - mean);
        const int32_t deviation = tw_isqrt(squares / AXIS + 1);
        for (int i = 0; i < AXIS; i += 16) {
            const int count = tw_min(16, AXIS - i);
            for (int j = 0; j < count; j++) {
                const int64_t product = (int64_t)(x[at + i + j] - mean) * weight[i + j];
                out[j] = (int32_t)((product / deviation + bias[i + j]) >> shift);
            }
            STORE_PANEL(epilogue, y, out, at + i, i, count);
        }
    }
}
