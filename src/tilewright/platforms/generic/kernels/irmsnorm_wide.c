/* ---
op: iRMSNorm
types: {x: T, weight: int32, y: U}
T: [int8, uint8, int16, uint16, int32]
U: [int8, int16, int32]
# Two loops over a row, one with quotients, and a root, in 64 bits.
cycles:
  elements: OUTER * AXIS
  rows: OUTER
  call: 1
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int32_t T;
typedef int8_t U;
#endif

/* The largest integer whose square does not exceed n. */
static inline int64_t irmsnorm_wide_root(uint64_t n) {
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

static void irmsnorm_wide(const T *x, const int32_t *weight, U *y, int OUTER, int AXIS, int D, int n_levels) {
    const int64_t top = n_levels / 2 - 1;
    int shift = 0;
    while (D >> (shift + 1))
        shift++;
    for (int outer = 0; outer < OUTER; outer++, x += AXIS, y += AXIS) {
        uint64_t squares = 0;
        for (int i = 0; i < AXIS; i++)
            squares += (uint64_t)((int64_t)x[i] * x[i]);
        const int64_t deviation = irmsnorm_wide_root(squares / (uint64_t)AXIS + 1);
        for (int i = 0; i < AXIS; i++) {
            const int64_t value = ((int64_t)x[i] * weight[i] / deviation) >> shift;
            y[i] = (U)(value < -top - 1 ? -top - 1 : value > top ? top : value);
        }
    }
}
