/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1", C: "== 1", F: "== 1"}
pack: {W: "G,F,C,KH,KW -> G/8,F,C,KH,KW,G%8"}
epilogue: row
cycles:
  taps: N * whole_eights(G) * (TAPS := (OH*KH - beyond(X_o1, strides_0) / dilations_0) * (OW*KW - beyond(X_o2, strides_1) / dilations_1))
  single_taps: N * left_of_eights(G) * TAPS
  rows: N*OH*OW * whole_eights(G) * KH
  single: N*OH*OW * left_of_eights(G)
  eights: N*OH*OW * eights(G)
  pixels: N*OH*OW
  results: N*OH*OW * G
  behind: N*OH*OW * G * FUSED
--- */
#include "tilewright_floats.h"

/* Fewer than 8 channels of one pixel, or no taps. */
static void depthwise_f32_some(int count, const struct tw_window *t, const float *x, const float *w, const float *bias,
                               float *out) {
    for (int j = 0; j < count; j++) {
        out[j] = bias ? bias[j] : 0.0f;
        for (int row = t->kh.begin; row < t->kh.end; row++) {
            for (int col = t->kw.begin; col < t->kw.end; col++)
                out[j] = TW_FMA(x[row * t->x_row + col * t->x_col + j], w[(row * t->KW + col) * 8 + j], out[j]);
        }
    }
}

static void depthwise_f32(const float *X, const float *W, const float *B, void *Y, int N, int G, int OH, int OW, int KH,
                          int KW, int X_n1, int X_n2, int strides_0, int strides_1, int pads_0, int pads_1,
                          int dilations_0, int dilations_1, const struct Epilogue *epilogue) {
    static const float zeros[8];
    const ptrdiff_t size = sizeof *X;
    struct tw_window taps = {.x_row = (ptrdiff_t)G * X_n2 * dilations_0, .x_col = (ptrdiff_t)G * dilations_1, .KW = KW};
    struct tw_float_taps job = {.x_col = taps.x_col * size};
    float out[16];
    for (int line = 0; line < N * OH; line++) {
        const int n = line / OH, ih = line % OH * strides_0 - pads_0;
        const float *x_line = X + ((ptrdiff_t)n * X_n1 + ih) * X_n2 * G;
        taps.kh = tw_inside(ih, X_n1, KH, dilations_0);
        job.rows = taps.kh.end - taps.kh.begin;
        for (int ow = 0; ow < OW; ow++) {
            const int iw = ow * strides_1 - pads_1;
            const float *x = x_line + (ptrdiff_t)iw * G;
            taps.kw = tw_inside(iw, X_n2, KW, dilations_1);
            job.cols = taps.kw.end - taps.kw.begin;
            job.x_next = (taps.x_row - job.cols * taps.x_col) * size;
            job.w_next = (KW - job.cols) * 8 * size;
            const ptrdiff_t first = taps.kh.begin * taps.x_row + taps.kw.begin * taps.x_col;
            const int first_w = (taps.kh.begin * KW + taps.kw.begin) * 8;
            for (int g = 0; g < G; g += 16) {
                const int count = tw_min(16, G - g);
                for (int j = 0; j < count; j += 8) {
                    const float *w = W + (ptrdiff_t)(g + j) * KH * KW;
                    if (count - j < 8 || job.rows * job.cols == 0) {
                        depthwise_f32_some(tw_min(8, count - j), &taps, x + g + j, w, B ? B + g + j : NULL, out + j);
                        continue;
                    }
                    job.x = x + first + g + j;
                    job.w = w + first_w;
                    job.from = B ? B + g + j : zeros;
                    job.out = out + j;
                    tw_floats_depthwise(&job);
                }
                STORE(epilogue, Y, out, ((ptrdiff_t)line * OW + ow) * G + g, G, g, 1, count);
            }
        }
    }
}
