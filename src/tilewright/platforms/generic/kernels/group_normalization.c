/* ---
op: GroupNormalization
types: {X: T, scale: T, bias: T, Y: T}
T: [float32, float64]
# Loops over a row, in numbers that may be doubles, and a root of a double.
cycles:
  elements: OUTER * AXIS
  doubles: (DOUBLE := several(words(X_bytes))) * OUTER * AXIS
  channels: OUTER * C
  rows: OUTER
  double_rows: DOUBLE * OUTER
--- */
#include "tilewright_kernel.h"
#include <math.h>

#ifndef TW_GENERATED
typedef float T;
#endif

static void group_normalization(const T *X, const T *scale, const T *bias, T *Y, int OUTER, int G, int C, int PIXELS,
                                double epsilon) {
    const int count = C * PIXELS;
    for (int group = 0; group < OUTER; group++, X += count, Y += count) {
        T sum = 0, squares = 0;
        for (int i = 0; i < count; i++)
            sum += X[i];
        const T mean = sum / (T)count;
        for (int i = 0; i < count; i++)
            squares += (X[i] - mean) * (X[i] - mean);
        const T inverse = (T)(1 / sqrt((double)squares / count + epsilon));
        for (int c = 0; c < C; c++) {
            const int channel = group % G * C + c;
            const T factor = inverse * scale[channel], offset = bias[channel] - mean * factor;
            for (int i = c * PIXELS; i < (c + 1) * PIXELS; i++)
                Y[i] = X[i] * factor + offset;
        }
    }
}
