/* ---
op: QuantizeLinear
types: {x: float32, y_scale: float32, y_zero_point: T, y: T}
T: [int8, uint8]
when: {scale: "scale > 1e-20 and scale < 1e20"}
cycles: "((SIZE+3)//4)*11 + 60"
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* `high` + `low` is the reciprocal of the scale to twice the digits: a product with it is a neighbour of the quotient, and
 * what then remains tells which one (Markstein). That is exact unless all digits of the scale are ones. Limits hold before
 * the division, too; the lower one comes first, and NaN becomes it. */
static void quantize_f32(const float *x, T *y, int SIZE, float scale, int zero) {
    const int lo = (T)-1 < 0 ? -128 : 0, exact = (tw_bits(scale) & 0x7FFFFFu) != 0x7FFFFFu;
    const float high = 1.0f / scale, low = TW_FMA(-scale, high, 1.0f) * high;
    const float least = (float)(lo - zero) * scale, most = (float)(lo + 255 - zero) * scale;
    const tw_reals lowest = vdupq_n_f32(least), highest = vdupq_n_f32(most);
    int i = 0;
    for (; exact && i + 4 <= SIZE; i += 4) {
        const tw_reals limited = vminnmq_f32(vmaxnmq_f32(vldrwq_f32(x + i), lowest), highest);
        const tw_reals near = vfmaq_n_f32(vmulq_n_f32(limited, low), limited, high);
        const tw_reals quotient = vfmaq_n_f32(near, vfmaq_n_f32(limited, near, -scale), high);
        const tw_lanes whole = vaddq_n_s32(vcvtnq_s32_f32(quotient), zero);
        tw_lanes_put(y + i, whole);
    }
    for (; i < SIZE; i++) {
        const float limited = x[i] > least ? x[i] < most ? x[i] : most : least;
        y[i] = (T)((int)rintf(limited / scale) + zero);
    }
}
