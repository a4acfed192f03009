/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", C: "== 1", F: "== 1", KH: "== 3", KW: "== 3", G: "% 4 == 0", dilations_0: "== 1", dilations_1: "== 1", strides_1: "<= 2"}
pack: {W: "G,F,C,KH,KW -> G,F,C,KH,KW"}
epilogue: row
scratch: "(min(OW, 24)*strides_1+5)*32 + (min(OW, 24)+2)*64"
cycles:
  columns: N*OH * fours(G) * OW * strides_1
  threes: one(strides_1) * N*OH * fours(G) * threes(OW)
  twos: several(strides_1) * N*OH * fours(G) * twos(OW)
  parts: N*OH * fours(G) * steps(OW, 24)
  blocks: N*OH * sixteens(G) * steps(OW, 24)
  weights: G
  results: N*OH*OW * G
  behind: N*OH*OW * G * FUSED
--- */
#include "tilewright_columns.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Pixels of a line that are done together: their columns, and their sums of 16 channels. */
#define LINE 24

static void depthwise_3x3_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int OH, int OW,
                             int X_n1, int X_n2, int strides_0, int strides_1, int pads_0, int pads_1, int x_zero_point,
                             void *scratch, const struct Epilogue *epilogue) {
    const struct tw_patch image = {.IH = X_n1, .IW = X_n2, .x_zero_point = x_zero_point, .x_col = G};
    uint32_t *const columns = scratch;
    struct tw_column_weights weights[16];
    const int lines = (OW + LINE - 1) / LINE, length = (OW + lines - 1) / lines; /* of equal length */
    /* Outputs are done in groups, whose last ones may lie behind the part: for them there are some columns more. */
    int32_t *const out = (int32_t *)scratch + (length * strides_1 + 5) * 8;
    int again = 0;
    for (int g = 0; g < G; g += 16) {
        const int channels = tw_min(16, G - g);
        for (int j = 0; j < channels; j++) {
            const int8_t *w = W + (g + j) * 9;
            weights[j] =
                (struct tw_column_weights){{tw_halves(w[0], w[3]), tw_halves(w[1], w[4]), tw_halves(w[2], w[5])},
                                           {tw_halves(w[6], w[7]), tw_halves(w[8], 0)},
                                           B ? B[g + j] : 0};
        }
        for (int line = 0, n = 0, oh = 0; line < N * OH; line++) {
            const T *x = X + (ptrdiff_t)n * X_n1 * X_n2 * G + g;
            const int ih = oh * strides_0 - pads_0;
            for (int ow = 0, pixels; ow < OW; ow += pixels) {
                pixels = tw_min(length, OW - ow);
                const int iw = ow * strides_1 - pads_1, count = (pixels - 1) * strides_1 + 3;
                const int before = tw_min(tw_max(-iw, 0), count);
                const struct tw_column_part part = {count, before,
                                                    tw_min(tw_max(iw + count - X_n2, 0), count - before)};
                const int groups = strides_1 == 1 ? (pixels + 2) / 3 : (pixels + 1) / 2;
                for (int j = 0; j < channels; j += 4) {
                    const struct tw_columns job = {columns, out + j, groups, weights + j};
                    TW_FOR_BYTES(x, tw_column_parts)(&image, x + j, ih, iw, &part, again, columns);
                    again = lines == 1; /* lines of one part all have the same columns outside */
                    if (strides_1 == 1)
                        tw_columns_next(&job);
                    else
                        tw_columns_every_other(&job);
                }
                STORE(epilogue, Y, out, ((ptrdiff_t)line * OW + ow) * G + g, G, g, pixels, channels);
            }
            if (++oh == OH) {
                oh = 0;
                n++;
            }
        }
    }
}
#undef LINE
