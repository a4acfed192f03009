/* ---
op: MaxPool
types: {X: float32, Y: float32}
when: {channels_last: "== 1", C: "C % 2 == 0 and C >= 16", X_s1: "% 2 == 0", X_s2: "% 2 == 0"}
epilogue: row
strided: [X, Y]
# Sixteen channels of a pixel at a time, in pairs; of windows at edges only what is inside the image.
cycles:
  taps: (BLOCKS := N * OH * OW * sixteens(C)) * KH * KW
  blocks: BLOCKS
  pixels: N * OH * OW
  results: N * OH * OW * C
  steps: N * OH * OW * C * STEPS
  behind: N * OH * OW * C * FUSED
  call: 1
--- */
#include "tilewright_windows.h"

static void maxpool_pairs_f32(const float *X, float *Y, int N, int C, int OH, int OW, int KH, int KW, int X_n1,
                              int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1, int Y_s2, int strides_0,
                              int strides_1, int pads_0, int pads_1, int dilations_0, int dilations_1,
                              const struct Epilogue *epilogue) {
    TW_WINDOWS(TW_FIRST_MAXIMUM, TW_MAXIMUM, "", -INFINITY, 1.0f, X, Y, epilogue);
}
