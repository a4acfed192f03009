/* ---
op: InstanceNormalization
types: {input: T, scale: T, B: T, output: T}
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

static void instance_normalization(const T *input, const T *scale, const T *B, T *output, int OUTER, int G, int C,
                                   int PIXELS, double epsilon) {
    const int count = C * PIXELS;
    for (int group = 0; group < OUTER; group++, input += count, output += count) {
        T sum = 0, squares = 0;
        for (int i = 0; i < count; i++)
            sum += input[i];
        const T mean = sum / (T)count;
        for (int i = 0; i < count; i++)
            squares += (input[i] - mean) * (input[i] - mean);
        const T inverse = (T)(1 / sqrt((double)squares / count + epsilon));
        for (int c = 0; c < C; c++) {
            const int channel = group % G * C + c;
            const T factor = inverse * scale[channel], offset = B[channel] - mean * factor;
            for (int i = c * PIXELS; i < (c + 1) * PIXELS; i++)
                output[i] = input[i] * factor + offset;
        }
    }
}
