/* ---
op: SoftmaxGrad
types: {dy: T, y: T, dx: T}
T: [float32, float64]
# Loops over a line; numbers may be doubles.
cycles:
  elements: OUTER * INNER * AXIS
  doubles: several(words(dy_bytes)) * OUTER * INNER * AXIS
  lines: OUTER * INNER
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef float T;
#endif

static void softmax_grad(const T *dy, const T *y, T *dx, int OUTER, int AXIS, int INNER) {
    for (int line = 0; line < OUTER * INNER; line++) {
        const int first = line / INNER * AXIS * INNER + line % INNER;
        T sum = 0;
        for (int i = 0; i < AXIS; i++)
            sum += dy[first + i * INNER] * y[first + i * INNER];
        for (int i = 0; i < AXIS; i++)
            dx[first + i * INNER] = y[first + i * INNER] * (dy[first + i * INNER] - sum);
    }
}
