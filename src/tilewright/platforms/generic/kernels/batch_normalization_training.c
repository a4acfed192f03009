/* ---
op: BatchNormalization
types: {X: T, scale: T, B: T, input_mean: T, input_var: T, Y: T, running_mean: T, running_var: T}
T: [float32, float64]
when: {training_mode: "== 1"}
# Three loops over a channel, in numbers that may be doubles, and a root of a double.
cycles:
  elements: C * BATCH * PIXELS
  doubles: (DOUBLE := several(words(X_bytes))) * C * BATCH * PIXELS
  runs: C * BATCH
  channels: C
  double_channels: DOUBLE * C
  call: 1
--- */
#include "tilewright_kernel.h"
#include <math.h>

#ifndef TW_GENERATED
typedef float T;
#endif

static void batch_normalization_training(const T *X, const T *scale, const T *B, const T *input_mean,
                                         const T *input_var, T *Y, T *running_mean, T *running_var, int BATCH, int C,
                                         int PIXELS, double epsilon, double momentum) {
    const ptrdiff_t sample = (ptrdiff_t)C * PIXELS;
    const T count = (T)(BATCH * PIXELS), kept = (T)momentum;
    for (int c = 0; c < C; c++) {
        const T *x = X + (ptrdiff_t)c * PIXELS;
        T *y = Y + (ptrdiff_t)c * PIXELS;
        T sum = 0, squares = 0;
        for (int n = 0; n < BATCH; n++)
            for (int i = 0; i < PIXELS; i++)
                sum += x[n * sample + i];
        const T mean = sum / count;
        for (int n = 0; n < BATCH; n++)
            for (int i = 0; i < PIXELS; i++)
                squares += (x[n * sample + i] - mean) * (x[n * sample + i] - mean);
        const T variance = squares / count;
        const T factor = scale[c] * (T)(1 / sqrt((double)variance + epsilon));
        for (int n = 0; n < BATCH; n++)
            for (int i = 0; i < PIXELS; i++)
                y[n * sample + i] = (x[n * sample + i] - mean) * factor + B[c];
        if (running_mean)
            running_mean[c] = input_mean[c] * kept + mean * (1 - kept);
        if (running_var)
            running_var[c] = input_var[c] * kept + variance * (1 - kept);
    }
}
