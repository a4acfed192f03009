/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1"}
pack: {W: "G,F,C,KH,KW -> G,F/4,KH,KW,C,F%4"}
epilogue: row
strided: [X, Y]
accumulate: [C]
scratch: "16*KH*KW*C"
# Four pixels and four channels at a time, tap by tap in runs of a row: 16 products and 11 other instructions, so two cores
# wait for the unit that they share. Pixels that are left are done one by one. Four pixels are a turn. Their results are
# stored 16 channels at a time, and pixel by pixel where they lie in two lines. Pixels at sides of the image (SIDES of a
# line) have columns of their own where these are whole fours (ALONE). Taps that lie outside for four pixels are left out:
# where cores have parts of an axis, those in the middle of it, which others wait for, have none. Where pixels at sides have
# no columns of their own, and at the upper and lower edge where four pixels lie in two lines, they are copied row by row,
# and all tap by tap where these lie apart. Results are loaded first where they are parts of sums.
cycles:
  taps: max(27, 16 + 16 * FPU_OTHERS) * G * fours(F) * C * ((QUADS := whole_fours(N*OH*OW)) * KH*KW
    - N * (ROWS := whole_fours(MIDDLE := OW
    - (ALONE := unless(APART := several(KW) * max(some(X_s2 - C), several(dilations_1))) * none(left_of_fours(N*OH))
    * (SIDES := min(OW, steps(min(X_o2, pads_1), strides_1) + (OW == Y_n2) * steps(max(X_o2, pads_1) - pads_1, strides_1))))))
    * (OH == Y_n1) * beyond(X_o1, strides_0) / dilations_0 * KW
    - some(ALONE) * whole_fours(N*OH) * (OW == Y_n2) * beyond(X_o2, strides_1) * KH)
  pixel_taps: (PIXEL_FOURS := G * fours(F) * (LEFT := left_of_fours(N*OH*OW))) * KH*KW*C
  runs: (G * fours(F) * QUADS + PIXEL_FOURS) * KH + G * KH * (APART * N*OH*OW*KW + unless(APART)
    * (EDGES := unless(ALONE) * N*OH*SIDES + N * (ALONE + left_of_fours(MIDDLE) * max(some(ALONE), none(SIDES)))
    * (steps(min(X_o1, pads_0), strides_0) + (OH == Y_n1) * steps(max(X_o1, pads_0) - pads_0, strides_0))))
  turns: some(N) + G * fours(N*OH*OW)
  stores: G * sixteens(F) * (unless(UNEVEN := max(some(ALONE), some(Y_s1 - OW*Y_s2))) * (QUADS + LEFT)
    + UNEVEN * (N*OH * (ROWS + left_of_fours(MIDDLE)) + ALONE*whole_fours(N*OH)))
  copied: G * KH*KW*C * max(APART * N*OH*OW, EDGES)
  results: (RESULTS := N*OH*OW * G*F) + SUMS * RESULTS
  behind: RESULTS * FUSED
--- */
#include "tilewright_floats.h"

/* Pixels are read where they are, as one run of numbers for each row of the filter. Rows of the filter that lie outside for
 * all of four pixels are left out, and columns of it where four pixels may lie in one column of the result. Pixels of which
 * more lies outside, or whose taps do not lie side by side, are copied first. */
static void conv2d_f32(const float *X, const float *W, const float *B, void *Y, int N, int G, int F, int OH, int OW,
                       int C, int KH, int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1,
                       int Y_s2, int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0, int dilations_1,
                       void *scratch, const struct Epilogue *epilogue) {
    /* Where pixels are all that is read, and lines lie end to end, there is one line. */
    if (KH == 1 && KW == 1 && strides_0 == 1 && strides_1 == 1 && pads_0 == 0 && pads_1 == 0 && X_n2 == OW &&
        X_s1 == OW * X_s2 && Y_s1 == OW * Y_s2) {
        OW *= OH;
        X_n2 *= OH;
        X_n1 = OH = 1;
    }
    const int filter = KH * KW * C, side_by_side = (X_s2 == C && dilations_1 == 1) || KW == 1;
    const struct tw_span all = {0, OW}, interior = tw_interior(OW, X_n2, KW, strides_1, dilations_1, pads_1);
    const struct tw_span middle = KW > 1 && side_by_side && N * OH % 4 == 0 ? interior : all;
    struct tw_window_patch shape = {.x_col = X_s2 * 4,
                                    .x_row = X_s1 * 4,
                                    .C = C * 4,
                                    .KH = KH,
                                    .IH = X_n1,
                                    .IW = X_n2,
                                    .dilations_0 = dilations_0,
                                    .dilations_1 = dilations_1};
    float *patch = scratch;
    float panel[16] = {0}, out[4 * 16];
    struct tw_float_lines runs;
    for (int g = 0, column = 0, columns = 0; g < G; column += columns, g += column == OW, column %= OW) {
        struct tw_span across = {0, KW};
        columns = column == middle.begin ? tw_max(1, middle.end - column) : 1;
        if (KW > 1 && (column < middle.begin || column >= middle.end))
            across = tw_inside(column * strides_1 - pads_1, X_n2, KW, dilations_1);
        if (across.begin == across.end)
            across = (struct tw_span){0, KW};
        shape.KW = across.end - across.begin;
        runs.words = shape.words = shape.KW * C;
        runs.w_step_run = (KW - shape.KW) * C * 16;
        const int step = shape.x_row * dilations_0 - shape.words * 4, last_col = X_n2 - (shape.KW - 1) * dilations_1;
        const int left = across.begin * dilations_1 - pads_1;
        const float *image = X + g * C;
        const int pixels = N * OH * columns;
        for (int pixel = 0, oh = 0, ow = column, line = g * F; pixel < pixels; pixel += 4) {
            const int done = tw_min(4, pixels - pixel), in_line = ow + done <= column + columns;
            int at[4], taken;
            struct tw_span down = {0, KH};
            if (KH > 1 && in_line)
                down = tw_inside(oh * strides_0 - pads_0, X_n1, KH, dilations_0);
            if (down.begin == down.end)
                down = (struct tw_span){0, KH};
            runs.rows = down.end - down.begin;
            const int skipped = down.begin * dilations_0, last_row = X_n1 - (runs.rows - 1) * dilations_0;
            for (int i = 0; i < done; i += taken) {
                const int ih = oh * strides_0 - pads_0 + skipped, iw = ow * strides_1 + left;
                taken = 1;
                if (side_by_side && ih >= 0 && iw >= 0 && ih < last_row && iw < last_col) {
                    const float *a = image + ih * X_s1 + iw * X_s2;
                    if (i == 0 && in_line && iw + (done - 1) * strides_1 < last_col)
                        taken = done;
                    for (int k = 0; k < taken; k++, a += strides_1 * X_s2) {
                        at[i + k] = line + (ow + k) * Y_s2;
                        runs.a[i + k] = a;
                        runs.step[i + k] = step;
                    }
                } else {
                    at[i] = line + ow * Y_s2;
                    runs.a[i] = patch + i * filter + down.begin * shape.words;
                    runs.step[i] = 0;
                    tw_gather_patch(&shape, image, ih - skipped, iw, (char *)(patch + i * filter));
                }
                ow += taken;
                if (ow == column + columns) {
                    ow = column;
                    line += Y_s1;
                    if (++oh == OH) {
                        oh = 0;
                        image += X_s0;
                        line += Y_s0 - OH * Y_s1;
                    }
                }
            }
            runs.w_step_fours = ((KH - runs.rows + 1) * KW - shape.KW) * C * 16;
            const int even = done == 4 && at[1] - at[0] == at[2] - at[1] && at[2] - at[1] == at[3] - at[2];
            const int together = even ? 4 : 1, pitch = even ? at[1] - at[0] : 0;
            const float *w = W + g * ((F + 3) / 4) * 4 * filter + (down.begin * KW + across.begin) * C * 4;
            for (int f = 0; f < F; f += 16) {
                const int count = tw_min(16, F - f);
                const float *bias = tw_float_biases(B, g * F + f, count, panel);
                tw_float_runs(&runs, done, (count + 3) / 4, w + f * filter, 4, bias, out);
                for (int i = 0; i < done; i += together)
                    STORE(epilogue, Y, out + i * 16, at[i] + f, pitch, g * F + f, together, count);
            }
        }
    }
}
