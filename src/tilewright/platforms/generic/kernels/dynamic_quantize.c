/* ---
op: DynamicQuantizeLinear
types: {x: float32, y: uint8, y_scale: float32, y_zero_point: uint8}
# Two loops, one of them with quotients.
cycles:
  elements: SIZE
--- */
#include "tilewright_kernel.h"

#include <math.h>

static void dynamic_quantize(const float *x, uint8_t *y, float *y_scale, uint8_t *y_zero_point, int SIZE) {
    float lo = 0.0f, hi = 0.0f;
    for (int i = 0; i < SIZE; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    const float scale = hi > lo ? (hi - lo) / 255.0f : 1.0f;
    const float zero = rintf(fminf(-lo / scale, 255.0f));
    for (int i = 0; i < SIZE; i++)
        y[i] = (uint8_t)fminf(fmaxf(rintf(x[i] / scale) + zero, 0.0f), 255.0f);
    if (y_scale)
        *y_scale = scale;
    if (y_zero_point)
        *y_zero_point = (uint8_t)zero;
}
