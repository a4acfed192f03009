/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1"}
pack: {W: "G,F,C,KH,KW -> G,F/4,KH,KW,C,F%4"}
epilogue: row
accumulate: [C]
cycles:
  # Lines by fours of pixels, or all of it where it is pointwise; columns that are left, and edges, are done downwards.
  products_of_four: (BLOCKS := N * G * fours(F)) * (FOURS := (FLAT := one(KH*KW*strides_0*strides_1) * none(X_o1 + X_o2)) * whole_fours(OH*OW)
    + unless(FLAT) * (OH*whole_fours(INNER := OW - min(OW, steps(X_o2, strides_1))) + (EDGES := OW - INNER + left_of_fours(INNER)) * whole_fours(OH)))
    * (TAPS := (KH - beyond(X_o1, strides_0) / dilations_0 / max(OH, some(KH))) * (KW - beyond(X_o2, strides_1) / dilations_1 / max(OW, some(KW))) * C)
  products_of_one: BLOCKS * (SINGLE := FLAT * left_of_fours(OH*OW) + unless(FLAT) * EDGES * left_of_fours(OH)) * TAPS
  runs: BLOCKS * (FOURS + SINGLE) * KH
  stores: N * (FOURS + SINGLE) * G * sixteens(F)
  lines: N * unless(FLAT) * (OH + EDGES) * G
  results: N*OH*OW * G*F
  behind: N*OH*OW * G*F * FUSED
--- */
#include "tilewright_floats.h"

static void conv2d_f32_line(const struct tw_line_f32 *line, ptrdiff_t panel_size, const float *B, void *Y,
                            const void *given) {
    const struct Epilogue *epilogue = given;
    float panel[16], out[4 * 16];
    for (int f = 0; f < line->channels; f += 16) {
        const int count = tw_min(16, line->channels - f);
        const float *w = line->w + f / 4 * panel_size;
        const float *bias = tw_bias_f32(B, line->channel + f, count, panel);
        for (int pixel = 0; pixel < line->pixels;) {
            const float *x = line->x + pixel * line->taps.x_pixel;
            const int done = tw_floats_block(line->pixels - pixel, count, &line->taps, x, w, panel_size, bias, out);
            const ptrdiff_t at = line->at + f + pixel * line->y_pixel;
            STORE(epilogue, Y, out, at, line->y_pixel, line->channel + f, done, count);
            pixel += done;
        }
    }
}

static void conv2d_f32(const float *X, const float *W, const float *B, void *Y, int N, int G, int F, int OH, int OW,
                       int C, int KH, int KW, int X_n1, int X_n2, int strides_0, int strides_1, int pads_0, int pads_1,
                       int dilations_0, int dilations_1, const struct Epilogue *epilogue) {
    tw_conv_lines_f32(TW_CONV_F32, 4, INT32_MAX, conv2d_f32_line, B, Y, epilogue);
}
