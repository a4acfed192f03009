/* ---
op: iLayerNorm
types: {x: T, weight: int32, bias: int32, y: U}
T: [int8, uint8, int16, uint16, int32]
U: [int8, int16, int32]
# Three loops over a row, one with quotients, and a root, in 64 bits.
cycles:
  elements: OUTER * AXIS
  rows: OUTER
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int32_t T;
typedef int8_t U;
#endif

/* The largest integer whose square does not exceed n. */
static inline int64_t ilayernorm_wide_root(uint64_t n) {
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 62; bit; bit >>= 2) {
        const uint64_t next = root + bit;
        root >>= 1;
        if (n >= next) {
            n -= next;
            root += bit;
        }
    }
    return (int64_t)root;
}

static void ilayernorm_wide(const T *x, const int32_t *weight, const int32_t *bias, U *y, int OUTER, int AXIS, int D) {
    int shift = 0;
    while (D >> (shift + 1))
        shift++;
    for (int outer = 0; outer < OUTER; outer++, x += AXIS, y += AXIS) {
        int64_t sum = 0;
        uint64_t squares = 0;
        for (int i = 0; i < AXIS; i++)
            sum += x[i];
        const int64_t mean = sum / AXIS;
        for (int i = 0; i < AXIS; i++)
            squares += (uint64_t)((x[i] - mean) * (x[i] - mean));
        const int64_t deviation = ilayernorm_wide_root(squares / (uint64_t)AXIS + 1);
        for (int i = 0; i < AXIS; i++) {
            const int64_t product = (x[i] - mean) * weight[i];
            y[i] = (U)((product / deviation + bias[i]) >> shift);
        }
    }
}
