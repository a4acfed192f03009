/* ---
op: MaxPool
types: {X: T, Y: T}
T: [int8, uint8]
when: {channels_last: "== 1"}
cycles:
  taps: N * whole_fours(C) * (TAPS := (OH*KH - beyond(X_o1, strides_0) / dilations_0) * (OW*KW - beyond(X_o2, strides_1) / dilations_1))
  single_taps: N * left_of_fours(C) * TAPS
  rows: N*OH*OW * whole_fours(C) * KH
  fours: N*OH*OW * whole_fours(C)
  pixels: N*OH*OW
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* The larger ones of four bytes each: a subtraction of bytes notes which ones they are, SEL takes them. */
TW_INLINE uint32_t maxpool_s8_larger(uint32_t a, uint32_t b) {
#if TW_ARM_DSP
    uint32_t larger;
    if ((T)(-1) < 0)
        __asm__("ssub8 %0, %1, %2\nsel %0, %1, %2" : "=&r"(larger) : "r"(a), "r"(b));
    else
        __asm__("usub8 %0, %1, %2\nsel %0, %1, %2" : "=&r"(larger) : "r"(a), "r"(b));
    return larger;
#else
    T x[4], y[4];
    memcpy(x, &a, sizeof a);
    memcpy(y, &b, sizeof b);
    for (int i = 0; i < 4; i++)
        x[i] = x[i] > y[i] ? x[i] : y[i];
    return tw_load_word(x);
#endif
}

/* Every window must hold at least one tap inside the image, as ONNX demands. */
static void maxpool_s8(const T *X, T *Y, int N, int C, int OH, int OW, int KH, int KW, int X_n1, int X_n2,
                       int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0, int dilations_1) {
    const ptrdiff_t x_row = (ptrdiff_t)C * X_n2 * dilations_0, x_col = (ptrdiff_t)C * dilations_1;
    for (int pixel = 0, n = 0, oh = 0, ow = 0; pixel < N * OH * OW; pixel++, Y += C) {
        const int ih = oh * strides_0 - pads_0, iw = ow * strides_1 - pads_1;
        const struct tw_span kh = tw_inside(ih, X_n1, KH, dilations_0), kw = tw_inside(iw, X_n2, KW, dilations_1);
        const T *x = X + (((ptrdiff_t)n * X_n1 + ih) * X_n2 + iw) * C + kh.begin * x_row + kw.begin * x_col;
        const int rows = kh.end - kh.begin, cols = kw.end - kw.begin;
        int c = 0;
        for (; c + 4 <= C; c += 4, x += 4) {
            uint32_t most = tw_load_word(x);
            const T *line = x;
            for (int row = 0; row < rows; row++, line += x_row) {
                const T *tap = line;
                for (int col = cols; col > 0; col--, tap += x_col)
                    most = maxpool_s8_larger(tw_load_word(tap), most);
            }
            tw_store_word(Y + c, most);
        }
        for (; c < C; c++, x++) {
            T most = *x;
            for (int tap = 1; tap < rows * cols; tap++) {
                const T value = x[tap / cols * x_row + tap % cols * x_col];
                most = value > most ? value : most;
            }
            Y[c] = most;
        }
        if (++ow == OW) {
            ow = 0;
            if (++oh == OH) {
                oh = 0;
                n++;
            }
        }
    }
}
