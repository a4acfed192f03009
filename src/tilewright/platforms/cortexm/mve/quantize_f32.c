/* ---
op: QuantizeLinear
types: {x: float32, y_scale: float32, y_zero_point: T, y: T}
T: [int8, uint8]
when: {scale: "scale > 1e-20 and scale < 1e20"}
cycles:
  lanes: whole_fours(SIZE)
  single: left_of_fours(SIZE)
  call: some(SIZE)
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void quantize_f32(const float *x, T *y, int SIZE, float scale, int zero) {
    const float lo = (T)-1 < 0 ? -128.0f : 0.0f;
    const int exact = (tw_bits(scale) & 0x7FFFFFu) != 0x7FFFFFu;
    int i = 0;
    for (; exact && i + 4 <= SIZE; i += 4)
        tw_lanes_put(y + i, tw_lanes_quantised(vldrwq_f32(x + i), scale, zero, lo, lo + 255.0f));
    for (; i < SIZE; i++)
        y[i] = (T)tw_quantised(x[i] / scale, (float)zero, lo, lo + 255.0f);
}
