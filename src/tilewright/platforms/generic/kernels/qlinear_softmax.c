/* ---
op: QLinearSoftmax
types: {X: T, X_scale: float32, x_zero_point: T, y_scale: float32, y_zero_point: U, Y: U}
T: [int8, uint8]
U: [int8, uint8]
# Two powers of each element, and two quotients.
cycles:
  elements: OUTER * INNER * AXIS
  call: 1
--- */
#include "tilewright_kernel.h"

#include <math.h>

#ifndef TW_GENERATED
typedef int8_t T;
typedef uint8_t U;
#endif

static void qlinear_softmax(const T *X, const float *X_scale, const float *y_scale, const U *y_zero_point, U *Y,
                            int OUTER, int AXIS, int INNER, int lowest) {
    const float lo = (float)lowest;
    for (int line = 0; line < OUTER * INNER; line++) {
        const int first = line / INNER * AXIS * INNER + line % INNER;
        int top = X[first];
        float sum = 0.0f;
        for (int i = 1; i < AXIS; i++)
            top = tw_max(top, X[first + i * INNER]);
        for (int i = 0; i < AXIS; i++)
            sum += expf((float)(X[first + i * INNER] - top) * *X_scale);
        for (int i = 0; i < AXIS; i++) {
            const float share = expf((float)(X[first + i * INNER] - top) * *X_scale) / sum;
            const float shifted = rintf(share / *y_scale) + (float)*y_zero_point;
            Y[first + i * INNER] = (U)fminf(fmaxf(shifted, lo), lo + 255.0f);
        }
    }
}
