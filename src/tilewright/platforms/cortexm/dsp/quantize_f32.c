/* ---
op: QuantizeLinear
types: {x: float32, y_scale: float32, y_zero_point: T, y: T}
T: [int8, uint8]
when: {scale: "scale > 1e-30 and scale < 1e30"}
cycles:
  elements: SIZE
  call: some(SIZE)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void quantize_f32(const float *x, T *y, int SIZE, float scale, int zero) {
    const int lo = (T)(-1) < 0 ? -128 : 0;
    int i = 0;
#if TW_ARM_ROUNDS
    float none = 0.0f; /* stays 0 unless there is a NaN or an infinity, which are done again below */
    TW_UNROLL_4 for (; i < SIZE; i++) {
        none = TW_FMA(x[i], 0.0f, none);
        y[i] = (T)((T)(-1) < 0 ? tw_clamp(tw_sum_limited(tw_nearest(x[i] / scale), zero), -128, 127)
                               : tw_clamp(tw_sum_limited(tw_nearest(x[i] / scale), zero), 0, 255));
    }
    i = none == 0.0f ? SIZE : 0;
#endif
    for (; i < SIZE; i++)
        y[i] = (T)tw_quantised(x[i] / scale, (float)zero, (float)lo, (float)(lo + 255));
}
