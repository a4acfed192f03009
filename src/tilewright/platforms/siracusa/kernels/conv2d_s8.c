/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1"}
pack: {W: "G,F,C,KH,KW -> G,F/4,KH,(KW,C)/4,F%4,(KW,C)%4"}
epilogue: row
scratch: "16*KH*((KW*C+3)//4)"
cycles: "G*(((N*OH*OW+3)//4)*(((F+3)//4)*(KH*(((KW*C+3)//4)*26 + 12) + 70) + 150) + N*OH*OW*(F*14 + min(G-1, 1)*KH*KW*(C/2 + 12))) + 150"
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Pixels are read where they are, as one run of bytes for each row of the filter. Those whose filter reaches over the edge
 * of the image, or whose taps do not lie side by side, are copied first. */
static void conv2d_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int F, int OH, int OW,
                      int C, int KH, int KW, int X_n1, int X_n2, int strides_0, int strides_1, int pads_0, int pads_1,
                      int dilations_0, int dilations_1, int x_zero_point, void *scratch,
                      const struct Epilogue *epilogue) {
    if (KH * KW == 1 && strides_0 * strides_1 == 1 && X_n1 == OH && X_n2 == OW && pads_0 == 0 && pads_1 == 0) {
        OW *= N * OH; /* pointwise: the image is one long line */
        X_n2 = OW;
        N = OH = X_n1 = 1;
    }
    const int words = (KW * C + 3) / 4, patch_bytes = KH * words * 4, pixels = N * OH * OW;
    const struct tw_window_patch shape = {.x_col = G * C,
                                          .x_row = G * C * X_n2,
                                          .C = C,
                                          .KH = KH,
                                          .KW = KW,
                                          .IH = X_n1,
                                          .IW = X_n2,
                                          .dilations_0 = dilations_0,
                                          .dilations_1 = dilations_1,
                                          .zero = x_zero_point,
                                          .words = words};
    const int side_by_side = (G == 1 && dilations_1 == 1) || KW == 1;
    const int next = strides_1 * shape.x_col, row = shape.x_row * dilations_0, step = row - words * 4;
    const int last_row = X_n1 - (KH - 1) * dilations_0, last_col = X_n2 - (KW - 1) * dilations_1;
    const T *end = X + N * X_n1 * shape.x_row - (KH - 1) * row - words * 4; /* no run is read beyond X */
    char *patch = scratch;
    int32_t panel[16], out[4 * 16];
    struct tw_runs runs = {.words = words, .rows = KH};
    if (KW * C % 4) /* behind each row the weights are zero; the bytes just have to be there */
        tw_fill_words(patch, 0, patch_bytes);
    for (int g = 0; g < G; g++) {
        const T *image = X + g * C;
        for (int pixel = 0, oh = 0, ow = 0; pixel < pixels; pixel += 4) {
            const int done = tw_min(4, pixels - pixel);
            const void *a[4];
            const int top = oh * strides_0 - pads_0, left = ow * strides_1 - pads_1;
            const T *first = image + top * shape.x_row + left * shape.x_col;
            const int inside = side_by_side && top >= 0 && top < last_row && left >= 0 && ow + 4 < OW &&
                               left + 3 * strides_1 < last_col && first + 3 * next <= end;
            for (int i = 0; inside && i < 4; i++) { /* the usual case: four neighbours in the middle of a line */
                a[i] = first + i * next;
                runs.step[i] = step;
            }
            ow += inside ? 4 : 0;
            for (int i = inside ? 4 : 0; i < 4; i++) {
                const int ih = oh * strides_0 - pads_0, iw = ow * strides_1 - pads_1;
                const T *x = image + ih * shape.x_row + iw * shape.x_col;
                if (i >= done) {
                    a[i] = a[i - 1];
                    runs.step[i] = runs.step[i - 1];
                } else if (side_by_side && ih >= 0 && iw >= 0 && ih < last_row && iw < last_col && x <= end) {
                    a[i] = x;
                    runs.step[i] = step;
                } else {
                    a[i] = patch + i * patch_bytes;
                    runs.step[i] = 0;
                    tw_gather_patch(&shape, image, ih, iw, patch + i * patch_bytes);
                }
                if (++ow == OW) {
                    ow = 0;
                    if (++oh == OH) {
                        oh = 0;
                        image += X_n1 * shape.x_row;
                    }
                }
            }
            runs.b = W + g * ((F + 3) / 4) * 4 * patch_bytes;
            for (int f = 0; f < F; f += 16) {
                const int count = tw_min(16, F - f);
                for (int i = 0; i < 4; i++)
                    runs.a[i] = a[i];
                runs.bias = tw_bias_s32(B, g * F + f, count, panel);
                runs.out = out;
                TW_FOR_BYTES(X, tw_dot_runs)(&runs, count);
                STORE(epilogue, Y, out, pixel * G * F + g * F + f, G * F, g * F + f, done, count);
            }
        }
    }
}
