/* ---
op: LayerNormalizationGrad
types: {dy: T, x: T, weight: T, bias: T, dx: T}
T: [float32, float64]
# Loops over a row, in numbers that may be doubles, and a root of a double.
cycles:
  elements: OUTER * AXIS
  doubles: (DOUBLE := several(words(x_bytes))) * OUTER * AXIS
  rows: OUTER
  double_rows: DOUBLE * OUTER
  call: 1
--- */
#include "tilewright_kernel.h"

#include <math.h>

#ifndef TW_GENERATED
typedef float T;
#endif

static void layer_norm_grad(const T *dy, const T *x, const T *weight, T *dx, int OUTER, int AXIS, float epsilon) {
    for (int row = 0; row < OUTER; row++, x += AXIS, dy += AXIS, dx += AXIS) {
        T mean = 0, variance = 0, total = 0, along = 0;
        for (int i = 0; i < AXIS; i++)
            mean += x[i];
        mean /= (T)AXIS;
        for (int i = 0; i < AXIS; i++)
            variance += (x[i] - mean) * (x[i] - mean);
        const T inverse = (T)(1 / sqrt((double)(variance / (T)AXIS) + (double)epsilon));
        for (int i = 0; i < AXIS; i++) {
            total += dy[i] * weight[i];
            along += dy[i] * weight[i] * (x[i] - mean) * inverse;
        }
        total /= (T)AXIS;
        along /= (T)AXIS;
        for (int i = 0; i < AXIS; i++)
            dx[i] = inverse * (dy[i] * weight[i] - total - (x[i] - mean) * inverse * along);
    }
}
