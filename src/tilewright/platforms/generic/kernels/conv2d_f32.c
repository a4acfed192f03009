/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1"}
pack: {W: "G,F,C,KH,KW -> G,F/16,KH,KW,C,F%16"}
epilogue: row
accumulate: [C]
# Rows of taps, four channels at a time.
cycles:
  taps: (PIXELS := N * OH * OW) * G * fours(F) * KH * KW * C
  rows: PIXELS * G * KH
  results: PIXELS * G * F
  behind: PIXELS * G * F * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"

static void conv2d_f32_line(const struct tw_line_f32 *line, ptrdiff_t panel_size, const float *B, void *Y,
                            const void *given) {
    const struct Epilogue *epilogue = given;
    float panel[16], out[4 * 16];
    for (int f = 0; f < line->channels; f += 16) {
        const int count = tw_min(16, line->channels - f);
        const float *w = line->w + f / 16 * panel_size;
        const float *bias = tw_bias_f32(B, line->channel + f, count, panel);
        for (int pixel = 0; pixel < line->pixels;) {
            const float *x = line->x + pixel * line->taps.x_pixel;
            const int done = tw_block_f32(line->pixels - pixel, count, line->taps, x, w, bias, out);
            const ptrdiff_t at = line->at + f + pixel * line->y_pixel;
            STORE(epilogue, Y, out, at, line->y_pixel, line->channel + f, done, count);
            pixel += done;
        }
    }
}

static void conv2d_f32(const float *X, const float *W, const float *B, void *Y, int N, int G, int F, int OH, int OW,
                       int C, int KH, int KW, int X_n1, int X_n2, int strides_0, int strides_1, int pads_0, int pads_1,
                       int dilations_0, int dilations_1, const struct Epilogue *epilogue) {
    /* Inputs of 32 pixels stay in the first cache. */
    tw_conv_lines_f32(TW_CONV_F32, 16, 32, conv2d_f32_line, B, Y, epilogue);
}
