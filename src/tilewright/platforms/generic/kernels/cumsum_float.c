/* ---
op: CumSum
types: {x: T, y: T}
T: [float32, float64]
# Loops over a line; numbers may be doubles.
cycles:
  elements: OUTER * INNER * AXIS
  doubles: several(words(x_bytes)) * OUTER * INNER * AXIS
  strided: several(INNER) * OUTER * INNER * AXIS
  call: 1
--- */
#include "tilewright_kernel.h"

/* Running sums along an axis. */
static void cumsum_float(const T *x, T *y, int OUTER, int AXIS, int INNER, int exclusive, int reverse) {
    for (int o = 0; o < OUTER; o++) {
        for (int i = 0; i < INNER; i++) {
            T total = 0;
            for (int step = 0; step < AXIS; step++) {
                const int at = (o * AXIS + (reverse ? AXIS - 1 - step : step)) * INNER + i;
                const T value = (T)x[at];
                if (exclusive)
                    y[at] = (T)total;
                total += value;
                if (!exclusive)
                    y[at] = (T)total;
            }
        }
    }
}
