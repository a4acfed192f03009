/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1"}
pack: {W: "G,F,C,KH,KW -> G,F,KH,KW,C"}
epilogue: row
strided: [X, Y]
accumulate: [C]
# Two channels of a pixel at a time; of filters at edges only what is inside the image.
cycles:
  products: (PAIRS := N * OH * OW * G * twos(F)) * C
    * max(KH - beyond(X_o1, strides_0) / max(dilations_0 * OH_all, dilations_0), some(KH)) * max(KW - beyond(X_o2, strides_1) / max(dilations_1 * OW_all, dilations_1), some(KW))
  pairs: PAIRS
  rows: PAIRS * KH
  results: N * OH * OW * G * F
  behind: N * OH * OW * G * F * FUSED
  call: 1
--- */
#include "tilewright_soft_sums.h"

static void conv2d_soft_f32(const float *X, const float *W, const float *B, void *Y, int N, int G, int F, int OH,
                            int OW, int C, int KH, int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0,
                            int Y_s1, int Y_s2, int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0,
                            int dilations_1, const struct Epilogue *epilogue) {
    const int filter = KH * KW * C, one_run = dilations_1 == 1 && X_s2 == C;
    struct tw_soft_runs runs = {.x_step = 1, .x_column = X_s2 * dilations_1, .x_row = X_s1 * dilations_0};
    runs.w_step = 1, runs.w_column = C, runs.w_row = KW * C;
    for (int n = 0; n < N; n++)
        for (int oh = 0; oh < OH; oh++) {
            const int ih = oh * strides_0 - pads_0;
            const struct tw_span kh = tw_inside(ih, X_n1, KH, dilations_0);
            runs.rows = kh.end - kh.begin;
            for (int ow = 0; ow < OW; ow++) {
                const int iw = ow * strides_1 - pads_1;
                const struct tw_span kw = tw_inside(iw, X_n2, KW, dilations_1);
                const float *x =
                    X + n * X_s0 + (ih + kh.begin * dilations_0) * X_s1 + (iw + kw.begin * dilations_1) * X_s2;
                const int at = n * Y_s0 + oh * Y_s1 + ow * Y_s2;
                runs.columns = one_run ? 1 : kw.end - kw.begin;
                runs.length = one_run ? (kw.end - kw.begin) * C : C;
                for (int g = 0; g < G; g++)
                    for (int f = 0; f < F; f += 2) {
                        const int channel = g * F + f, more = f + 1 < F;
                        float out[2] = {B ? B[channel] : 0.0f, B ? B[channel + more] : 0.0f};
                        runs.w_next = more * filter;
                        tw_soft_pair(&runs, x + g * C, W + channel * filter + (kh.begin * KW + kw.begin) * C, out);
                        STORE_1(epilogue, Y, out[0], at + channel, channel);
                        if (more)
                            STORE_1(epilogue, Y, out[1], at + channel + 1, channel + 1);
                    }
            }
        }
}
