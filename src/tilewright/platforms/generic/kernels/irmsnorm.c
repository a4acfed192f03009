/* ---
op: iRMSNorm
types: {x: T, weight: int32, y: int32}
T: [int8, uint8]
when: {AXIS: "<= 32768"}      # so that the sum of squares fits 32 bits
epilogue: row
cycles: "OUTER*(100+AXIS*14)"
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void irmsnorm(const T *x, const int32_t *weight, void *y, int OUTER, int AXIS, int D,
                     const struct Epilogue *epilogue) {
    int32_t out[16];
    int shift = 0;
    while (D >> (shift + 1))
        shift++;
    for (int outer = 0; outer < OUTER; outer++) {
        const ptrdiff_t at = (ptrdiff_t)outer * AXIS;
        int32_t squares = 0;
        for (int i = 0; i < AXIS; i++)
            squares += x[at + i] * x[at + i];
        const int32_t deviation = tw_isqrt(squares / AXIS + 1);
        for (int i = 0; i < AXIS; i += 16) {
            const int count = tw_min(16, AXIS - i);
            for (int j = 0; j < count; j++) {
                const int64_t value = ((int64_t)x[at + i + j] * weight[i + j] / deviation) >> shift;
                out[j] = (int32_t)(value < -128 ? -128 : value > 127 ? 127 : value);
            }
            STORE_PANEL(epilogue, y, out, at + i, i, count);
        }
    }
}
