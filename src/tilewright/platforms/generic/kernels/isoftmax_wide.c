/* ---
op: iSoftmax
types: {x: T, y: U}
T: [int8, uint8, int16, uint16, int32]
U: [uint8, uint16]
# Two powers of each element and a quotient, in 64 bits.
cycles:
  elements: OUTER * AXIS
  rows: OUTER
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int32_t T;
typedef uint8_t U;
#endif

/* (A * (p + B)^2 + C) >> z for a value that lies `distance` below the maximum; far below, the square wraps. */
static inline int64_t isoftmax_wide_power(uint32_t distance, int coeffA, int coeffB, int coeffC, int log2) {
    const uint32_t steps = distance / (uint32_t)log2, z = steps < 31 ? steps : 31;
    const uint64_t p = (uint64_t)((int64_t)z * log2 - distance + coeffB);
    return (int64_t)((uint64_t)coeffA * p * p + (uint64_t)coeffC) >> z;
}

static void isoftmax_wide(const T *x, U *y, int OUTER, int AXIS, int coeffA, int coeffB, int coeffC, int log2,
                          int n_levels) {
    for (int outer = 0; outer < OUTER && AXIS > 0; outer++, x += AXIS, y += AXIS) {
        int64_t top = x[0], sum = 0;
        for (int i = 1; i < AXIS; i++)
            top = x[i] > top ? x[i] : top;
        for (int i = 0; i < AXIS; i++)
            sum += isoftmax_wide_power((uint32_t)(top - x[i]), coeffA, coeffB, coeffC, log2);
        for (int i = 0; i < AXIS; i++) {
            const int64_t power = isoftmax_wide_power((uint32_t)(top - x[i]), coeffA, coeffB, coeffC, log2);
            y[i] = (U)(sum ? power * (n_levels - 1) / sum : 0);
        }
    }
}
