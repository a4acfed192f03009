/* ---
op: MaxPool
types: {X: float32, Y: float32}
when: {channels_last: "== 1"}
epilogue: row
strided: [X, Y]
# Taps are those inside the image. Up to two lines of windows of one size are no loop for single channels. Fitted on the
# simulator to 30 layers of 1 to 128 channels and 2 to 49 taps.
cycles: "N*OH*((PADDED := (pads_0+pads_1+pads_2+pads_3 > 0))*50
  + OW*((C//4)*((TAPS := (ROWS := KH - (OH == Y_n1)*X_o1/max(OH, 1))*(KW - (OW == Y_n2)*X_o2/max(OW, 1)))*(9 + (OTHERS > 0)*0.2) + ROWS*5 + 32) + (C%4)*(TAPS*3 + (LOOPS := (PADDED or KH > 2))*(ROWS*7.5 + 5)
  + (1-LOOPS)*(KH*4 + 9)) + (C > 1)*(5 + PADDED*16) + PADDED*5)) + 20 + FIRST*LOOPS*150"
--- */
#include "tilewright_kernel.h"

/* The largest of some neighbours, for four channels; then for one. Compilers would call a function. */
#define LARGEST_OF_FOUR                                                                                                \
    __asm__ volatile(                                                                                                  \
        ".option push\n.option norvc\n" TW_REPEAT(                                                                     \
            "%[count]",                                                                                                \
            "18") "flw ft0, 0(%[x])\nflw ft1, 4(%[x])\nflw ft2, 8(%[x])\nflw ft3, 12(%[x])\n"                          \
                  "fmax.s %[a], %[a], ft0\nfmax.s %[b], %[b], ft1\nfmax.s %[c], %[c], ft2\nfmax.s %[d], %[d], ft3\n"   \
                  "add %[x], %[x], %[step]\n.option pop\n"                                                             \
        : [a] "+f"(a), [b] "+f"(b), [c] "+f"(c), [d] "+f"(d), [x] "+r"(x)                                              \
        : [count] "r"(columns), [step] "r"(4 * x_col)                                                                  \
        : "ft0", "ft1", "ft2", "ft3", "memory")
#define LARGEST                                                                                                        \
    __asm__ volatile(                                                                                                  \
        ".option push\n.option norvc\n" TW_REPEAT(                                                                     \
            "%[count]", "6") "flw ft0, 0(%[x])\nadd %[x], %[x], %[step]\nfmax.s %[a], %[a], ft0\n.option pop\n"        \
        : [a] "+f"(a), [x] "+r"(x)                                                                                     \
        : [count] "r"(columns), [step] "r"(4 * x_col)                                                                  \
        : "ft0", "memory")

/* Every window has a tap inside the image, as ONNX demands. */
static void maxpool_f32(const float *X, void *Y, int N, int C, int OH, int OW, int KH, int KW, int X_n1, int X_n2,
                        int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1, int Y_s2, int strides_0, int strides_1,
                        int pads_0, int pads_1, int dilations_0, int dilations_1, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const int x_row = X_s1 * dilations_0, x_col = X_s2 * dilations_1;
    for (int n = 0; n < N; n++)
        for (int oh = 0; oh < OH; oh++) {
            const int ih = oh * strides_0 - pads_0;
            const struct tw_span kh = tw_inside(ih, X_n1, KH, dilations_0);
            for (int ow = 0; ow < OW; ow++) {
                const int iw = ow * strides_1 - pads_1, at = n * Y_s0 + oh * Y_s1 + ow * Y_s2;
                const struct tw_span kw = tw_inside(iw, X_n2, KW, dilations_1);
                const float *window = X + n * X_s0 + ih * X_s1 + kh.begin * x_row + iw * X_s2 + kw.begin * x_col;
                const int columns = kw.end - kw.begin, jump = x_row - columns * x_col;
                int channel = 0;
                for (; channel + 4 <= C; channel += 4, window += 4) {
                    const float *x = window;
                    float a = x[0], b = x[1], c = x[2], d = x[3];
                    for (int row = kh.begin; row < kh.end; row++, x += jump)
                        LARGEST_OF_FOUR;
                    STORE_4(&e, Y, a, b, c, d, at + channel, channel);
                }
                for (int left = C % 4; left > 0; left--, channel++, window++) {
                    const float *x = window;
                    float a = *x;
                    for (int row = kh.begin; row < kh.end; row++, x += jump)
                        LARGEST;
                    STORE_1(&e, Y, a, at + channel, channel);
                }
            }
        }
}
#undef LARGEST_OF_FOUR
#undef LARGEST
