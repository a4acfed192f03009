/* ---
op: MaxPool
types: {X: T, Y: T}
T: [int8, uint8]
when: {channels_last: "== 1"}
strided: [X, Y]
cycles:
  taps: N * sixteens(C) * (OH*KH - beyond(X_o1, strides_0) / dilations_0) * (OW*KW - beyond(X_o2, strides_1) / dilations_1)
  rows: N*OH*OW * sixteens(C) * KH
  sixteens: N*OH*OW * sixteens(C)
  pixels: N*OH*OW
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Every window must hold at least one tap inside the image, as ONNX demands. What is exclusive-ored makes unsigned numbers
 * signed. */
static void maxpool_s8(const T *X, T *Y, int N, int C, int OH, int OW, int KH, int KW, int X_n1, int X_n2, int X_s0,
                       int X_s1, int X_s2, int Y_s0, int Y_s1, int Y_s2, int strides_0, int strides_1, int pads_0,
                       int pads_1, int dilations_0, int dilations_1) {
    const int8x16_t flip = vreinterpretq_s8_u8(vdupq_n_u8((T)-1 > 0 ? 0x80 : 0));
    const int x_row = X_s1 * dilations_0, x_col = X_s2 * dilations_1;
    for (int pixel = 0; pixel < N * OH * OW; pixel++) {
        const int n = pixel / (OH * OW), oh = pixel / OW % OH, ow = pixel % OW;
        const int ih = oh * strides_0 - pads_0, iw = ow * strides_1 - pads_1;
        const struct tw_span kh = tw_inside(ih, X_n1, KH, dilations_0), kw = tw_inside(iw, X_n2, KW, dilations_1);
        const int8_t *x = (const int8_t *)X + n * X_s0 + ih * X_s1 + iw * X_s2 + kh.begin * x_row + kw.begin * x_col;
        int8_t *y = (int8_t *)Y + n * Y_s0 + oh * Y_s1 + ow * Y_s2;
        for (int c = 0; c < C; c += 16, x += 16, y += 16) {
            const mve_pred16_t some = vctp8q((uint32_t)(C - c));
            int8x16_t most = vdupq_n_s8(-128);
            for (int row = 0; row < kh.end - kh.begin; row++) {
                const int8_t *tap = x + row * x_row;
                for (int col = kw.begin; col < kw.end; col++, tap += x_col)
                    most = vmaxq_s8(most, veorq_s8(vldrbq_z_s8(tap, some), flip));
            }
            vstrbq_p_s8(y, veorq_s8(most, flip), some);
        }
    }
}
