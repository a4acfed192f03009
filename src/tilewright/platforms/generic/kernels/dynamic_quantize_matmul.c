/* ---
op: DynamicQuantizeMatMul
types: {A: float32, B: T, b_scale: float32, b_zero_point: T, bias: float32, Y: float32}
T: [int8, uint8]
scratch: "ROWS*K"
# Rows are quantised, then multiplied.
cycles:
  products: ROWS * N * K
  quantised: ROWS * K
  results: ROWS * N
--- */
#include "tilewright_kernel.h"

#include <math.h>

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void dynamic_quantize_matmul(const float *A, const T *B, const float *b_scale, const T *b_zero_point,
                                    const float *bias, float *Y, int ROWS, int N, int K, int b_scale_step,
                                    int b_zero_point_step, void *scratch) {
    uint8_t *left = scratch;
    const int size = ROWS * K;
    float lo = 0.0f, hi = 0.0f;
    for (int i = 0; i < size; i++) {
        lo = A[i] < lo ? A[i] : lo;
        hi = A[i] > hi ? A[i] : hi;
    }
    const float scale = hi > lo ? (hi - lo) / 255.0f : 1.0f;
    const float shift = rintf(fminf(-lo / scale, 255.0f));
    const int zero = (int)shift;
    for (int i = 0; i < size; i++)
        left[i] = (uint8_t)fminf(fmaxf(rintf(A[i] / scale) + shift, 0.0f), 255.0f);
    for (int row = 0; row < ROWS; row++) {
        for (int n = 0; n < N; n++) {
            const int right_zero = b_zero_point ? b_zero_point[n * b_zero_point_step] : 0;
            uint32_t sum = 0;
            for (int k = 0; k < K; k++)
                sum += (uint32_t)((left[row * K + k] - zero) * (B[k * N + n] - right_zero));
            const float real = (float)(int32_t)sum * (scale * b_scale[n * b_scale_step]);
            Y[row * N + n] = bias ? real + bias[n] : real;
        }
    }
}
