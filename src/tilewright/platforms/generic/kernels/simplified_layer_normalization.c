/* ---
op: SimplifiedLayerNormalization
types: {X: T, scale: T, Y: T, inv_std_var: T}
T: [float32, float64]
# Loops over a row, in numbers that may be doubles, and a root of a double.
cycles:
  elements: OUTER * AXIS
  doubles: several(words(X_bytes)) * OUTER * AXIS
  rows: OUTER
  call: 1
--- */
#include "tilewright_kernel.h"
#include <math.h>

#ifndef TW_GENERATED
typedef float T;
#endif

static void simplified_layer_normalization(const T *X, const T *scale, T *Y, T *inv_std_var, int OUTER, int AXIS,
                                           double epsilon) {
    for (int row = 0; row < OUTER; row++, X += AXIS, Y += AXIS) {
        T squares = 0;
        for (int i = 0; i < AXIS; i++)
            squares += X[i] * X[i];
        const T inverse = (T)(1 / sqrt((double)squares / AXIS + epsilon));
        for (int i = 0; i < AXIS; i++)
            Y[i] = X[i] * inverse * scale[i];
        if (inv_std_var)
            inv_std_var[row] = inverse;
    }
}
