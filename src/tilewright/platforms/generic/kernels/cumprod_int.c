/* ---
op: CumProd
types: {x: T, y: T}
T: [int8, uint8, int16, uint16, int32, uint32, int64, uint64]
# Products of 64 bits, of elements that may be as wide.
cycles:
  elements: OUTER * INNER * AXIS
  wide: several(words(x_bytes)) * OUTER * INNER * AXIS
  strided: several(INNER) * OUTER * INNER * AXIS
--- */
#include "tilewright_kernel.h"

/* Unsigned arithmetic wraps, and its low bits are those of any narrower type. */
static void cumprod_int(const T *x, T *y, int OUTER, int AXIS, int INNER, int exclusive, int reverse) {
    for (int o = 0; o < OUTER; o++) {
        for (int i = 0; i < INNER; i++) {
            uint64_t total = 1;
            for (int step = 0; step < AXIS; step++) {
                const int at = (o * AXIS + (reverse ? AXIS - 1 - step : step)) * INNER + i;
                const uint64_t value = (uint64_t)x[at];
                if (exclusive)
                    y[at] = (T)total;
                total *= value;
                if (!exclusive)
                    y[at] = (T)total;
            }
        }
    }
}
