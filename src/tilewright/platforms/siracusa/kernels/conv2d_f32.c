/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1"}
pack: {W: "G,F,C,KH,KW -> G,F/4,KH,KW,C,F%4"}
epilogue: row
strided: [X, Y]
accumulate: [C]
scratch: "16*KH*KW*C"
# Fitted on the simulator to 308 layers of networks and of random shapes, at their first and later steps: blocks of four
# pixels by four channels, what is done for each block of pixels and for each 16 of its channels (more where it lies in
# two rows of the result, or where long steps behind take the kernel's place in the core's cache), and results, which are
# loaded where they are sums. Then pixels that are copied: those at the edges of the image that the part has, or all.
cycles: "G*(((N*OH*OW+3)//4)*(((F+3)//4)*(KH*(KW*C*29.15 + 21) + 27) + 266
  + ((F+15)//16)*(336 + (FUSED > 40)*220 + (OW > 1 and OH > 1 and OW%4 > 0 and OW < OW_all)*150)) + N*OH*OW*F*(12.9 + SUMS*16)
  + (KW == 1 or (X_s2 == C and dilations_1 == 1))*N*(OH*OW
  - max(OH - (min(max((OH_all-1)*strides_0 + (KH-1)*dilations_0 + 1 - X_n1, 0),
    max(pads_0, pads_2) + (OH == OH_all)*KH*dilations_0) + strides_0 - 1)//strides_0, 0)
  * max(OW - (min(max((OW_all-1)*strides_1 + (KW-1)*dilations_1 + 1 - X_n2, 0),
    max(pads_1, pads_3) + (OW == OW_all)*KW*dilations_1) + strides_1 - 1)//strides_1, 0))*(KH*(KW*C*2.6 + 50) + 71)
  + N*OH*OW*(KW > 1 and (X_s2 != C or dilations_1 > 1))*KH*KW*(C*1.7 + 50)) + 220"
--- */
#include "tilewright_kernel.h"

/* Pixels are read where they are, as one run of numbers for each row of the filter. Those whose filter reaches over the
 * edge of the image, or whose taps do not lie side by side, are copied first. */
static void conv2d_f32(const float *X, const float *W, const float *B, void *Y, int N, int G, int F, int OH, int OW,
                       int C, int KH, int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1,
                       int Y_s2, int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0, int dilations_1,
                       void *scratch, const struct Epilogue *epilogue) {
    const int words = KW * C, patch_words = KH * words, pixels = N * OH * OW;
    const struct tw_window_patch shape = {.x_col = X_s2 * 4,
                                          .x_row = X_s1 * 4,
                                          .C = C * 4,
                                          .KH = KH,
                                          .KW = KW,
                                          .IH = X_n1,
                                          .IW = X_n2,
                                          .dilations_0 = dilations_0,
                                          .dilations_1 = dilations_1,
                                          .words = words};
    const int side_by_side = (X_s2 == C && dilations_1 == 1) || KW == 1;
    const int step = shape.x_row * dilations_0 - words * 4;
    const int last_row = X_n1 - (KH - 1) * dilations_0, last_col = X_n2 - (KW - 1) * dilations_1;
    float *patch = scratch;
    float panel[16], out[4 * 16];
    struct tw_runs runs = {.words = words, .rows = KH};
    for (int g = 0; g < G; g++) {
        const float *image = X + g * C;
        for (int pixel = 0, oh = 0, ow = 0, line = g * F; pixel < pixels; pixel += 4) {
            const int done = tw_min(4, pixels - pixel);
            int at[4];
            for (int i = 0; i < 4; i++) {
                const int ih = oh * strides_0 - pads_0, iw = ow * strides_1 - pads_1;
                at[i] = line + ow * Y_s2;
                if (i >= done) {
                    runs.a[i] = runs.a[i - 1];
                    runs.step[i] = runs.step[i - 1];
                } else if (side_by_side && ih >= 0 && iw >= 0 && ih < last_row && iw < last_col) {
                    runs.a[i] = image + ih * X_s1 + iw * X_s2;
                    runs.step[i] = step;
                } else {
                    runs.a[i] = patch + i * patch_words;
                    runs.step[i] = 0;
                    tw_gather_patch(&shape, image, ih, iw, (char *)(patch + i * patch_words));
                }
                if (++ow == OW) {
                    ow = 0;
                    line += Y_s1;
                    if (++oh == OH) {
                        oh = 0;
                        image += X_s0;
                        line += Y_s0 - OH * Y_s1;
                    }
                }
            }
            const int even = at[1] - at[0] == at[2] - at[1] && at[2] - at[1] == at[3] - at[2];
            const float *w = W + g * ((F + 3) / 4) * 4 * patch_words;
            for (int f = 0; f < F; f += 16) {
                const int count = tw_min(16, F - f);
                const float *bias = tw_bias_f32(B, g * F + f, count, panel);
                for (int j = 0; j < count; j += 4)
                    tw_float_runs(&runs, w + (f + j) * patch_words, 4, bias + j, out + j);
                for (int i = 0; i < done; i += even ? 4 : 1)
                    STORE(epilogue, Y, out + i * 16, at[i] + f, at[1] - at[0], g * F + f, even ? done : 1, count);
            }
        }
    }
}
