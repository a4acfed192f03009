/* ---
op: RMSNorm
types: {x: T, w: T, y: T}
T: [float32, float64]
# Loops over a row, in numbers that may be doubles, and a root of a double.
cycles:
  elements: OUTER * AXIS
  doubles: several(words(x_bytes)) * OUTER * AXIS
  rows: OUTER
  call: 1
--- */
#include "tilewright_kernel.h"
#include <math.h>

#ifndef TW_GENERATED
typedef float T;
#endif

static void rms_norm(const T *x, const T *w, T *y, int OUTER, int AXIS, double eps) {
    for (int row = 0; row < OUTER; row++, x += AXIS, y += AXIS) {
        T squares = 0;
        for (int i = 0; i < AXIS; i++)
            squares += x[i] * x[i];
        const T inverse = (T)(1 / sqrt((double)squares / AXIS + eps));
        for (int i = 0; i < AXIS; i++)
            y[i] = x[i] * inverse * w[i];
    }
}
