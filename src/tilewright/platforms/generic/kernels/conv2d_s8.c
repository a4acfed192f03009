/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1"}
pack: {W: "G,F,C,KH,KW -> G,F/4,F%4,(KH,KW,C)/16,(KH,KW,C)%16"}
epilogue: row
scratch: "4*((KH*KW*C+15)//16)*16"
# What windows cover is copied, then multiplied, four channels and four bytes at a time.
cycles:
  products: (PIXELS := N * OH * OW) * G * fours(F) * words(KH * KW * C)
  copied: PIXELS * G * KH * KW * C
  results: PIXELS * G * F
  behind: PIXELS * G * F * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void conv2d_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int F, int OH, int OW,
                      int C, int KH, int KW, int X_n1, int X_n2, int strides_0, int strides_1, int pads_0, int pads_1,
                      int dilations_0, int dilations_1, int x_zero_point, void *scratch,
                      const struct Epilogue *epilogue) {
    const struct tw_patch shape = TW_PATCH(C, (ptrdiff_t)G * C);
    const int length = tw_round16(KH * KW * C), pixels = N * OH * OW;
    const int pointwise = G == 1 && KH * KW == 1 && strides_0 * strides_1 == 1 && X_n1 == OH && X_n2 == OW;
    T *patch = scratch;
    int32_t panel[16], out[4 * 16];
    memset(patch, 0, (size_t)length * 4);
    for (int g = 0; g < G; g++) {
        for (int pixel = 0, n = 0, oh = 0, ow = 0; pixel < pixels; pixel += 4) {
            const int done = tw_min(4, pixels - pixel);
            /* Rows may be read in place where the padding of the last one is still inside X. */
            const int in_place = pointwise && (ptrdiff_t)(pixel + 3) * C + length <= (ptrdiff_t)pixels * C;
            const T *a = in_place ? X + (ptrdiff_t)pixel * C : patch;
            for (int i = 0; i < done && !in_place; i++) {
                if (pointwise) {
                    tw_copy(patch + i * length, X + (ptrdiff_t)(pixel + i) * C, C);
                    continue;
                }
                const T *x = X + (ptrdiff_t)n * X_n1 * X_n2 * shape.x_col + (ptrdiff_t)g * C;
                tw_gather(&shape, x, oh, ow, patch + i * length);
                if (++ow == OW) {
                    ow = 0;
                    if (++oh == OH) {
                        oh = 0;
                        n++;
                    }
                }
            }
            for (int f = 0; f < F; f += 16) {
                const int count = tw_min(16, F - f);
                const int8_t *w = W + ((ptrdiff_t)g * ((F + 3) / 4 * 4) + f) * length;
                const int32_t *bias = tw_bias_s32(B, g * F + f, count, panel);
                tw_dot_rows(4, count, a, in_place ? C : length, w, length, length, bias, out);
                const ptrdiff_t at = (ptrdiff_t)pixel * G * F + g * F + f;
                STORE(epilogue, Y, out, at, (ptrdiff_t)G * F, g * F + f, done, count);
            }
        }
    }
}
