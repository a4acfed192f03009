/* ---
op: MaxPool
types: {X: T, Y: T}
T: [int8, uint8, float32]
when: {channels_last: "== 1"}
# The first tap of a window inside the image is copied, others are compared.
cycles:
  pixels: N * OH * OW
  taps: (TAPS := N * (OH * KH - (OH == OH_all) * X_o1) * (OW * KW - (OW == OW_all) * X_o2))
  words: several(X_bytes) * (COMPARED := max(TAPS - N * OH * OW, none(C)) * C)
  bytes: one(X_bytes) * COMPARED
  signed: one(X_bytes) * X_signed * COMPARED
  copied: N * OH * OW * whole_eights(C * X_bytes)
  copied_bytes: N * OH * OW * left_of_eights(C * X_bytes)
  call: 1
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Every window must hold at least one tap inside the image, as ONNX demands. */
static void maxpool(const T *X, T *Y, int N, int C, int OH, int OW, int KH, int KW, int X_n1, int X_n2, int strides_0,
                    int strides_1, int pads_0, int pads_1, int dilations_0, int dilations_1) {
    const ptrdiff_t x_row = (ptrdiff_t)C * X_n2 * dilations_0, x_col = (ptrdiff_t)C * dilations_1;
    for (int pixel = 0; pixel < N * OH * OW; pixel++) {
        const int n = pixel / (OH * OW), ih = pixel / OW % OH * strides_0 - pads_0,
                  iw = pixel % OW * strides_1 - pads_1;
        const struct tw_span kh = tw_inside(ih, X_n1, KH, dilations_0), kw = tw_inside(iw, X_n2, KW, dilations_1);
        const T *image = X + (ptrdiff_t)n * X_n1 * X_n2 * C;
        T *restrict y = Y + (ptrdiff_t)pixel * C;
        for (int row = kh.begin; row < kh.end; row++) {
            for (int col = kw.begin; col < kw.end; col++) {
                const T *x = image + ((ptrdiff_t)ih * X_n2 + iw) * C + row * x_row + col * x_col;
                if (row == kh.begin && col == kw.begin) {
                    memcpy(y, x, (size_t)C * sizeof *y);
                } else {
                    for (int c = 0; c < C; c++)
                        y[c] = y[c] > x[c] ? y[c] : x[c];
                }
            }
        }
    }
}
