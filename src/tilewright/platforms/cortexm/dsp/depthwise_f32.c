/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1", C: "== 1", F: "== 1"}
pack: {W: "G,F,C,KH,KW -> G/8,F,C,KH,KW,G%8"}
epilogue: row
cycles: "N*OH*OW*((G//8)*8*(10+KH*KW*1.7+KH*2) + (G%8)*(15+KH*KW*8) + 40)"
--- */
#include "tilewright_floats.h"

/* Up to 8 channels of one pixel. */
static void depthwise_f32_some(int count, const struct tw_window *t, const float *x, const float *w, const float *bias,
                               float *out) {
    for (int j = 0; j < count; j++)
        out[j] = bias[j];
    for (int row = t->kh.begin; row < t->kh.end; row++) {
        const float *a = x + row * t->x_row + t->kw.begin * t->x_col, *b = w + (row * t->KW + t->kw.begin) * 8;
        const int taps = t->kw.end - t->kw.begin;
        if (count == 8 && taps > 0) {
            tw_floats_depthwise(a, b, taps, t->x_col * (ptrdiff_t)sizeof *x, out);
            continue;
        }
        for (int j = 0; j < count; j++) {
            for (int tap = 0; tap < taps; tap++)
                out[j] = TW_FMA(a[tap * t->x_col + j], b[tap * 8 + j], out[j]);
        }
    }
}

static void depthwise_f32(const float *X, const float *W, const float *B, void *Y, int N, int G, int OH, int OW, int KH,
                          int KW, int X_n1, int X_n2, int strides_0, int strides_1, int pads_0, int pads_1,
                          int dilations_0, int dilations_1, const struct Epilogue *epilogue) {
    struct tw_window taps = {.x_row = (ptrdiff_t)G * X_n2 * dilations_0, .x_col = (ptrdiff_t)G * dilations_1, .KW = KW};
    float panel[16], out[16];
    for (int line = 0; line < N * OH; line++) {
        const int n = line / OH, ih = line % OH * strides_0 - pads_0;
        const float *x = X + ((ptrdiff_t)n * X_n1 + ih) * X_n2 * G;
        taps.kh = tw_inside(ih, X_n1, KH, dilations_0);
        for (int ow = 0; ow < OW; ow++) {
            const int iw = ow * strides_1 - pads_1;
            taps.kw = tw_inside(iw, X_n2, KW, dilations_1);
            for (int g = 0; g < G; g += 16) {
                const int count = tw_min(16, G - g);
                const float *bias = tw_bias_f32(B, g, count, panel);
                for (int j = 0; j < count; j += 8)
                    depthwise_f32_some(tw_min(8, count - j), &taps, x + (ptrdiff_t)iw * G + g + j,
                                       W + (ptrdiff_t)(g + j) * KH * KW, bias + j, out + j);
                STORE(epilogue, Y, out, ((ptrdiff_t)line * OW + ow) * G + g, G, g, 1, count);
            }
        }
    }
}
