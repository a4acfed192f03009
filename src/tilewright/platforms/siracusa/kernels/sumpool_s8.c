/* ---
op: AveragePool
types: {X: T, Y: int32}
T: [int8, uint8]
when: {sum: "== 1", channels_last: "== 1", pads_0: "== 0", pads_1: "== 0", pads_2: "== 0", pads_3: "== 0", ceil_mode: "== 0"}
epilogue: row
strided: [X]
# Four channels of a window at a time, line by line unless these are one; then channels that are left, byte by byte.
cycles:
  words: N*OH*OW * whole_fours(C) * KH*KW
  lines: N*OH*OW * whole_fours(C) * KH * (X_s1*dilations_0 != KW*X_s2*dilations_1)
  stores: N*OH*OW * whole_fours(C)
  bytes: N*OH*OW * left_of_fours(C) * KH*KW
  last_stores: N*OH*OW * ragged_fours(C)
  pixels: N*OH*OW
  behind: N*OH*OW * C * FUSED
  call: some(N)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Four channels of all pixels of a window, line by line: each channel is the product with a word that has its 1 there. */
#define SUMPOOL_FOUR(CODE)                                                                                             \
    __asm__ volatile(                                                                                                  \
        TW_WINDOW("16", "10",                                                                                          \
                  ".insn r 0x0B, 7, 0x10, t0, %[x], %[step]\n" /* p.lw, pointer moves */                               \
                  TW_SDOT(CODE, "%[s0]", "t0", "%[u0]") TW_SDOT(CODE, "%[s1]", "t0", "%[u1]")                          \
                      TW_SDOT(CODE, "%[s2]", "t0", "%[u2]") TW_SDOT(CODE, "%[s3]", "t0", "%[u3]"))                     \
        : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [x] "+r"(pixel)                                  \
        : [rows] "r"(rows), [columns] "r"(columns), [step] "r"(x_col), [jump] "r"(x_row - columns * x_col),            \
          [u0] "r"(1), [u1] "r"(1 << 8), [u2] "r"(1 << 16), [u3] "r"(1 << 24)                                          \
        : "t0", "memory")

/* The last few channels of a pixel. */
TW_APART void rest(const T *x, void *Y, int x_row, int x_col, int rows, int columns, int at, int channel, int count,
                   const struct Epilogue *epilogue) {
    int32_t sums[3] = {0};
    for (int i = 0; i < count; i++)
        for (int row = 0; row < rows; row++)
            for (int column = 0; column < columns; column++)
                sums[i] += x[row * x_row + column * x_col + i];
    STORE(epilogue, Y, sums, at, 0, channel, 1, count);
}

static void sumpool_s8(const T *X, void *Y, int N, int C, int OH, int OW, int KH, int KW, int X_s0, int X_s1, int X_s2,
                       int strides_0, int strides_1, int dilations_0, int dilations_1,
                       const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const int x_row = X_s1 * dilations_0, x_col = X_s2 * dilations_1;
    /* Lines of which nothing is left out are one. */
    const int joined = x_row == KW * x_col, rows = joined ? 1 : KH, columns = joined ? KH * KW : KW;
    for (int pixel_at = 0, at = 0; pixel_at < N * OH * OW; pixel_at++, at += C) {
        const int n = pixel_at / (OH * OW), oh = pixel_at / OW % OH, ow = pixel_at % OW;
        const T *x = X + n * X_s0 + oh * strides_0 * X_s1 + ow * strides_1 * X_s2;
        int c = 0;
        for (; c + 4 <= C; c += 4, x += 4) {
            int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
            const T *pixel = x;
            if ((T)(-1) < 0)
                SUMPOOL_FOUR(TW_SDOT_S8);
            else
                SUMPOOL_FOUR(TW_SDOT_U8);
            STORE_4(&e, Y, s0, s1, s2, s3, at + c, c);
        }
        if (c < C)
            rest(x, Y, x_row, x_col, rows, columns, at + c, c, C - c, epilogue);
    }
}
