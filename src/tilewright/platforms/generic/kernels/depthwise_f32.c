/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1", C: "== 1", F: "== 1"}
pack: {W: "G,F,C,KH,KW -> G/16,F,C,KH,KW,G%16"}
epilogue: row
# Tiles of sixteen channels of four pixels INSIDE the image or of one (ONES): four channels at a time, tap by tap. Where
# channels are no multiple of four, the last few (REST) one by one, in a loop over sixteen.
cycles:
  tiles: N * OH * sixteens(G) * ((FOURS := whole_fours(INSIDE := max(min(OW, steps(X_n2 + dilations_1 - KW * dilations_1
    + min(X_o2, pads_1), strides_1)) - steps(min(X_o2, pads_1), strides_1), none(OW)))) + (ONES := OW - INSIDE + left_of_fours(INSIDE)))
  taps: (QUADS := fours(G - left_of_sixteens(G)) + unless(ragged_fours(G)) * fours(left_of_sixteens(G))) * N
    * (ROWS := OH * KH - (OH == OH_all) * X_o1) * KW * FOURS
  edge_taps: QUADS * N * ROWS * (EDGES := max(KW * ONES - (OW == OW_all) * X_o2 / dilations_1, none(ONES)))
  single: (REST := ragged_fours(G) * left_of_sixteens(G)) * N * ROWS * (KW * (OW - ONES) + EDGES)
  single_results: REST * N * OH * OW
  ragged: ragged_fours(G) * N * OH * OW
  results: N * OH * OW * G
  behind: N * OH * OW * G * FUSED
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
