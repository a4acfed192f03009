/* ---
op: LayerNormalization
types: {X: T, Scale: T, B: T, Y: T, Mean: T, InvStdDev: T}
T: [float32, float64]
# Loops over a row, in numbers that may be doubles, and a root of a double.
cycles:
  elements: OUTER * AXIS
  doubles: (DOUBLE := several(words(X_bytes))) * OUTER * AXIS
  rows: OUTER
  double_rows: DOUBLE * OUTER
  call: 1
--- */
#include "tilewright_kernel.h"
#include <math.h>

#ifndef TW_GENERATED
typedef float T;
#endif

static void layer_normalization(const T *X, const T *Scale, const T *B, T *Y, T *Mean, T *InvStdDev, int OUTER,
                                int AXIS, double epsilon) {
    for (int row = 0; row < OUTER; row++, X += AXIS, Y += AXIS) {
        T sum = 0, squares = 0;
        for (int i = 0; i < AXIS; i++)
            sum += X[i];
        const T mean = sum / (T)AXIS;
        for (int i = 0; i < AXIS; i++)
            squares += (X[i] - mean) * (X[i] - mean);
        const T inverse = (T)(1 / sqrt((double)squares / AXIS + epsilon));
        for (int i = 0; i < AXIS; i++)
            Y[i] = (X[i] - mean) * inverse * Scale[i] + (B ? B[i] : 0);
        if (Mean)
            Mean[row] = mean;
        if (InvStdDev)
            InvStdDev[row] = inverse;
    }
}
