/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1"}
pack: {W: "G,F,C,KH,KW -> G,F/4,KH,KW,C,F%4"}
epilogue: row
strided: [X, Y]
accumulate: [C]
scratch: "16*KH*KW*C"
# Four pixels and four channels at a time, and pixels that are left one by one, tap by tap in runs of a row; cores wait for the
# unit that they share. Four pixels are a turn for each 16 channels. Pixels at edges of the image (SIDES of a line, and ROWS
# of them) are copied row by row, and all tap by tap where these lie apart; rows that lie outside are not copied. Results
# are loaded first where they are parts of sums.
cycles:
  taps: (FOURS := G * fours(F) * (QUADS := whole_fours(N*OH*OW))) * KH*KW*C
  meetings: FPU_OTHERS * G * fours(F) * N*OH*OW * KH*KW*C
  pixel_taps: (PIXEL_FOURS := G * fours(F) * (LEFT := left_of_fours(N*OH*OW))) * KH*KW*C
  runs: (FOURS + PIXEL_FOURS) * KH
    + G * KH * ((APART := several(KW) * max(some(X_s2 - C), several(dilations_1))) * N*OH*OW*KW
    + unless(APART) * (EDGES := N * (OH * (SIDES := min(OW, steps(min(X_o2, pads_1), strides_1) + (OW == Y_n2) * steps(max(X_o2, pads_1) - pads_1, strides_1)))
    + (ROWS := min(OH, steps(min(X_o1, pads_0), strides_0) + (OH == Y_n1) * steps(max(X_o1, pads_0) - pads_0, strides_0)))
    * (OW - SIDES))))
  turns: some(N) + G * fours(N*OH*OW) * sixteens(F)
  copied: G * KW*C * (KH * max(APART * N*OH*OW, EDGES) - unless(APART) * N*OW * beyond(X_o1, strides_0))
  results: (RESULTS := N*OH*OW * G*F) + SUMS * RESULTS
  behind: RESULTS * FUSED
--- */
#include "tilewright_floats.h"

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
    float panel[16] = {0}, out[4 * 16];
    struct tw_runs runs = {.words = words, .rows = KH};
    for (int g = 0; g < G; g++) {
        const float *image = X + g * C;
        for (int pixel = 0, oh = 0, ow = 0, line = g * F; pixel < pixels; pixel += 4) {
            const int done = tw_min(4, pixels - pixel);
            int at[4];
            for (int i = 0; i < done; i++) {
                const int ih = oh * strides_0 - pads_0, iw = ow * strides_1 - pads_1;
                at[i] = line + ow * Y_s2;
                if (side_by_side && ih >= 0 && iw >= 0 && ih < last_row && iw < last_col) {
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
            const int even = done == 4 && at[1] - at[0] == at[2] - at[1] && at[2] - at[1] == at[3] - at[2];
            const int together = even ? 4 : 1, pitch = even ? at[1] - at[0] : 0;
            const float *w = W + g * ((F + 3) / 4) * 4 * patch_words;
            for (int f = 0; f < F; f += 16) {
                const int count = tw_min(16, F - f);
                const float *bias = tw_float_biases(B, g * F + f, count, panel);
                tw_float_runs(&runs, done, (count + 3) / 4, w + f * patch_words, 4, bias, out);
                for (int i = 0; i < done; i += together)
                    STORE(epilogue, Y, out + i * 16, at[i] + f, pitch, g * F + f, together, count);
            }
        }
    }
}
