/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1", C: "== 1", F: "== 1"}
pack: {W: "G,F,C,KH,KW -> G/16,F,C,KH,KW,G%16"}
epilogue: row
cycles: "N*G*OH*OW*(4+KH*KW/4)"
--- */
#include "tilewright_kernel.h"

static void depthwise_f32(const float *X, const float *W, const float *B, void *Y, int N, int G, int OH, int OW, int KH,
                          int KW, int X_n1, int X_n2, int strides_0, int strides_1, int pads_0, int pads_1,
                          int dilations_0, int dilations_1, const struct Epilogue *epilogue) {
    struct tw_window taps = {.x_pixel = (ptrdiff_t)G * strides_1,
                             .x_row = (ptrdiff_t)G * X_n2 * dilations_0,
                             .x_col = (ptrdiff_t)G * dilations_1,
                             .KW = KW};
    const struct tw_span interior = tw_interior(OW, X_n2, KW, strides_1, dilations_1, pads_1);
    float panel[16], out[4 * 16];
    for (int line = 0; line < N * OH; line++) {
        const int n = line / OH, ih = line % OH * strides_0 - pads_0;
        const float *x_line = X + ((ptrdiff_t)n * X_n1 + ih) * X_n2 * G;
        taps.kh = tw_inside(ih, X_n1, KH, dilations_0);
        for (int g = 0; g < G; g += 16) {
            const int count = tw_min(16, G - g);
            const float *w = W + (ptrdiff_t)g * KH * KW;
            const float *bias = tw_bias_f32(B, g, count, panel);
            for (int ow = 0; ow < OW;) {
                const int pixels = ow >= interior.begin && ow + 4 <= interior.end ? 4 : 1;
                const int iw = ow * strides_1 - pads_1;
                taps.kw = tw_inside(iw, X_n2, KW, dilations_1);
                tw_depthwise_f32(pixels, count, taps, x_line + (ptrdiff_t)iw * G + g, w, bias, out);
                STORE(epilogue, Y, out, ((ptrdiff_t)line * OW + ow) * G + g, G, g, pixels, count);
                ow += pixels;
            }
        }
    }
}
