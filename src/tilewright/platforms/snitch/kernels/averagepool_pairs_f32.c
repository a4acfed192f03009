/* ---
op: AveragePool
types: {X: float32, Y: float32}
when: {sum: "== 0", channels_last: "== 1", C: "C % 2 == 0 and C >= 16", X_s1: "% 2 == 0", X_s2: "% 2 == 0"}
epilogue: row
strided: [X, Y]
# Sixteen channels of a pixel at a time, in pairs; of windows at edges only what is inside the image.
cycles:
  taps: (BLOCKS := N * OH * OW * sixteens(C)) * KH * KW
  blocks: BLOCKS
  pixels: N * OH * OW
  results: N * OH * OW * C
  behind: N * OH * OW * C * FUSED
  call: 1
--- */
#include "tilewright_windows.h"

/* Explicit padding may count, but never what a rounded-up last window covers beyond it. */
TW_INLINE float averagepool_pairs_f32_factor(int ih, int iw, int height, int width, int KH, int KW, int dilations_0,
                                             int dilations_1) {
    const struct tw_span ph = tw_inside(ih, height, KH, dilations_0), pw = tw_inside(iw, width, KW, dilations_1);
    return 1.0f / (float)((ph.end - ph.begin) * (pw.end - pw.begin));
}

static void averagepool_pairs_f32(const float *X, float *Y, int N, int C, int OH, int OW, int KH, int KW, int X_n1,
                                  int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1, int Y_s2, int strides_0,
                                  int strides_1, int pads_0, int pads_1, int pads_2, int pads_3, int dilations_0,
                                  int dilations_1, int count_include_pad, const struct Epilogue *epilogue) {
    TW_WINDOWS(TW_FIRST_ADDED, TW_ADDED, TW_EIGHT(TW_SCALED), 0.0f,
               count_include_pad
                   ? averagepool_pairs_f32_factor(ih + pads_0, iw + pads_1, X_n1 + pads_0 + pads_2,
                                                  X_n2 + pads_1 + pads_3, KH, KW, dilations_0, dilations_1)
                   : 1.0f / (float)(rows * columns),
               X, Y, epilogue);
}
