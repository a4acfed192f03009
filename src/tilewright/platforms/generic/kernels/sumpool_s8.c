/* ---
op: AveragePool
types: {X: T, Y: int32}
T: [int8, uint8]
when: {sum: "== 1", channels_last: "== 1", pads_0: "== 0", pads_1: "== 0", pads_2: "== 0", pads_3: "== 0", ceil_mode: "== 0"}
epilogue: row
# Sixteen channels at a time.
cycles:
  taps: N*OH*OW * C * KH*KW
  rows: N*OH*OW * sixteens(C) * KH*KW
  blocks: N*OH*OW * sixteens(C)
  results: N*OH*OW * C
  behind: N*OH*OW * C * FUSED
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void sumpool_s8(const T *X, void *Y, int N, int C, int OH, int OW, int KH, int KW, int X_n1, int X_n2,
                       int strides_0, int strides_1, int dilations_0, int dilations_1,
                       const struct Epilogue *epilogue) {
    const ptrdiff_t x_row = (ptrdiff_t)C * X_n2 * dilations_0, x_col = (ptrdiff_t)C * dilations_1;
    int32_t out[16];
    for (int pixel = 0; pixel < N * OH * OW; pixel++) {
        const int n = pixel / (OH * OW), ih = pixel / OW % OH * strides_0, iw = pixel % OW * strides_1;
        const T *x = X + (((ptrdiff_t)n * X_n1 + ih) * X_n2 + iw) * C;
        for (int c = 0; c < C; c += 16) {
            const int count = tw_min(16, C - c);
            TW_FOR_BYTES(X, tw_window_sum)(count, x + c, x_row, x_col, KH, KW, out);
            STORE(epilogue, Y, out, (ptrdiff_t)pixel * C + c, 0, c, 1, count);
        }
    }
}
