/* ---
op: AveragePool
types: {X: float32, Y: float32}
when: {sum: "== 0", channels_last: "== 1"}
epilogue: row
# Windows of sixteen channels, or of fewer; quotients, for which cores wait for each other; then what is divided to find a
# pixel.
cycles:
  taps: (PIXELS := N * OH * OW) * KH * KW * whole_sixteens(C)
  ragged_taps: PIXELS * KH * KW * ragged_sixteens(C)
  quotients: PIXELS * C
  waits: one(PARTS) * OTHERS * PIXELS * C
  blocks: PIXELS * sixteens(C)
  pixels: PIXELS
  behind: PIXELS * C * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"

static void averagepool_f32(const float *X, void *Y, int N, int C, int OH, int OW, int KH, int KW, int X_n1, int X_n2,
                            int strides_0, int strides_1, int pads_0, int pads_1, int pads_2, int pads_3,
                            int dilations_0, int dilations_1, int count_include_pad, const struct Epilogue *epilogue) {
    const ptrdiff_t x_row = (ptrdiff_t)C * X_n2 * dilations_0, x_col = (ptrdiff_t)C * dilations_1;
    float out[16];
    for (int pixel = 0; pixel < N * OH * OW; pixel++) {
        const int n = pixel / (OH * OW), ih = pixel / OW % OH * strides_0 - pads_0,
                  iw = pixel % OW * strides_1 - pads_1;
        const struct tw_span kh = tw_inside(ih, X_n1, KH, dilations_0), kw = tw_inside(iw, X_n2, KW, dilations_1);
        const int rows = kh.end - kh.begin, cols = kw.end - kw.begin;
        /* Explicit padding may count, but never what a rounded-up last window covers beyond it. */
        const struct tw_span ph = tw_inside(ih + pads_0, X_n1 + pads_0 + pads_2, KH, dilations_0);
        const struct tw_span pw = tw_inside(iw + pads_1, X_n2 + pads_1 + pads_3, KW, dilations_1);
        const int taps = count_include_pad ? (ph.end - ph.begin) * (pw.end - pw.begin) : rows * cols;
        const float *x = X + (((ptrdiff_t)n * X_n1 + ih) * X_n2 + iw) * C + kh.begin * x_row + kw.begin * x_col;
        for (int c = 0; c < C; c += 16) {
            const int count = tw_min(16, C - c);
            tw_window_sum_f32(count, x + c, x_row, x_col, rows, cols, out);
            for (int j = 0; j < count; j++)
                out[j] /= (float)taps;
            STORE(epilogue, Y, out, (ptrdiff_t)pixel * C + c, 0, c, 1, count);
        }
    }
}
