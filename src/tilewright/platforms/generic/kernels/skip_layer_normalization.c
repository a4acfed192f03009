/* ---
op: SkipLayerNormalization
types: {input: T, skip: T, gamma: T, beta: T, bias: T, output: T, mean: T, inv_std_var: T, input_skip_bias_sum: T}
T: [float32, float64]
# Loops over a row, in numbers that may be doubles, and a root of a double.
cycles:
  elements: OUTER * AXIS
  doubles: (DOUBLE := several(words(input_bytes))) * OUTER * AXIS
  rows: OUTER
  double_rows: DOUBLE * OUTER
  call: 1
--- */
#include "tilewright_kernel.h"
#include <math.h>

#ifndef TW_GENERATED
typedef float T;
#endif

static void skip_layer_normalization(const T *input, const T *skip, const T *gamma, const T *beta, const T *bias,
                                     T *output, T *mean, T *inv_std_var, T *input_skip_bias_sum, int OUTER, int AXIS,
                                     int SKIP_ROWS, double epsilon) {
    for (int row = 0; row < OUTER; row++) {
        const T *x = input + (ptrdiff_t)row * AXIS, *residual = skip + (ptrdiff_t)(row % SKIP_ROWS) * AXIS;
        T *y = output + (ptrdiff_t)row * AXIS;
        T sum = 0, squares = 0;
        for (int i = 0; i < AXIS; i++) {
            y[i] = x[i] + residual[i] + (bias ? bias[i] : 0);
            sum += y[i];
        }
        if (input_skip_bias_sum)
            memcpy(input_skip_bias_sum + (ptrdiff_t)row * AXIS, y, (size_t)AXIS * sizeof *y);
        const T average = sum / (T)AXIS;
        for (int i = 0; i < AXIS; i++)
            squares += (y[i] - average) * (y[i] - average);
        const T inverse = (T)(1 / sqrt((double)squares / AXIS + epsilon));
        for (int i = 0; i < AXIS; i++)
            y[i] = (y[i] - average) * inverse * gamma[i] + (beta ? beta[i] : 0);
        if (mean)
            mean[row] = average;
        if (inv_std_var)
            inv_std_var[row] = inverse;
    }
}
