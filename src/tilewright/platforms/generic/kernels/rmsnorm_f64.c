/* ---
op: RMSNormalization
types: {X: T, scale: T, Y: T}
T: [float32, float64]
cycles: "OUTER*(AXIS*6+60)"
--- */
#include "tilewright_kernel.h"
#include <math.h>

#ifndef TW_GENERATED
typedef float T;
#endif

static void rms_normalization(const T *X, const T *scale, T *Y, int OUTER, int AXIS, double epsilon) {
    for (int row = 0; row < OUTER; row++, X += AXIS, Y += AXIS) {
        T squares = 0;
        for (int i = 0; i < AXIS; i++)
            squares += X[i] * X[i];
        const T inverse = (T)(1 / sqrt((double)squares / AXIS + epsilon));
        for (int i = 0; i < AXIS; i++)
            Y[i] = X[i] * inverse * scale[i];
    }
}
