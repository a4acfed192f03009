/* ---
op: AveragePool
types: {X: T, Y: int32}
T: [int8, uint8]
when: {sum: "== 1", channels_last: "== 1", pads_0: "== 0", pads_1: "== 0", pads_2: "== 0", pads_3: "== 0", ceil_mode: "== 0"}
epilogue: lanes
strided: [X]
cycles:
  taps: N*OH*OW * eights(C) * KH*KW
  rows: N*OH*OW * eights(C) * KH
  eights: N*OH*OW * eights(C)
  pixels: N*OH*OW
  single: N*OH*OW * left_of_fours(C)
  behind: N*OH*OW * C * FUSED
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Sums of eight channels, or fewer, in 16 bits; as many taps as these hold are added up before they become wider. */
TW_INLINE void window(const T *x, int row_step, int column_step, int rows, int columns, int count, int32_t *sums) {
    const mve_pred16_t some = vctp16q((uint32_t)count);
    const int taps = (T)-1 < 0 ? 255 : 128, most = tw_max(1, taps / columns), run = tw_min(columns, taps);
    tw_lanes even = vdupq_n_s32(0), odd = even;
    for (int row = 0; row < rows; row += most) {
        for (int column = 0; column < columns; column += run) {
            int16x8_t sum = vdupq_n_s16(0);
            for (int i = row; i < tw_min(row + most, rows); i++) {
                const T *tap = x + i * row_step + column * column_step;
                for (int j = column; j < tw_min(column + run, columns); j++, tap += column_step) {
                    sum = vaddq_s16(sum, TW_FOR_BYTES(x, tw_eight)(tap, some));
                }
            }
            even = vaddq_s32(even, vmovlbq_s16(sum));
            odd = vaddq_s32(odd, vmovltq_s16(sum));
        }
    }
    const int32x4x2_t both = {{even, odd}};
    vst2q_s32(sums, both);
}

static void sumpool_s8(const T *X, void *Y, int N, int C, int OH, int OW, int KH, int KW, int X_s0, int X_s1, int X_s2,
                       int strides_0, int strides_1, int dilations_0, int dilations_1,
                       const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const int x_row = X_s1 * dilations_0, x_col = X_s2 * dilations_1;
    /* Lines of which nothing is left out are one. */
    const int joined = x_row == KW * x_col, rows = joined ? 1 : KH, columns = joined ? KH * KW : KW;
    for (int pixel = 0, at; pixel < N * OH * OW; pixel++) {
        const int n = pixel / (OH * OW), oh = pixel / OW % OH, ow = pixel % OW;
        const T *x = X + n * X_s0 + oh * strides_0 * X_s1 + ow * strides_1 * X_s2;
        at = pixel * C;
        for (int c = 0; c < C; c += 8, x += 8) {
            int32_t sums[8];
            window(x, x_row, x_col, rows, columns, C - c, sums);
            for (int i = 0; i < 8 && c + i < C; i += 4, at += 4) {
#if STORE_HAS_LANES
                if (c + i + 4 <= C) {
                    STORE_LANES(&e, Y, vldrwq_s32(sums + i), at, c + i);
                    continue;
                }
#endif
                for (int j = i; j < tw_min(i + 4, C - c); j++)
                    STORE_1(&e, Y, sums[j], at + j - i, c + j);
            }
        }
    }
}
