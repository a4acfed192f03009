/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", C: "== 1", F: "== 1", KH: "== 3", KW: "== 3", G: "% 4 == 0", dilations_0: "== 1", dilations_1: "== 1", strides_1: "<= 2"}
pack: {W: "G,F,C,KH,KW -> G,F,C,KH,KW"}
epilogue: row
scratch: "2400"
cycles: "N*G*OH*OW*(15+5*strides_1) + N*G*OH*40 + 120*G"
--- */
#include "tilewright_columns.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Pixels of a line that are done together: their columns, and their sums of 16 channels. */
#define LINE 16
#define COLUMNS (LINE * 2 + 3)

/* Columns of four channels from image column `iw` on; what lies outside the image is the zero point. */
static void depthwise_3x3_s8_columns(const struct tw_patch *s, const T *x, int ih, int iw, int count, uint32_t *to) {
    const uint32_t outside = (uint32_t)(uint8_t)s->x_zero_point * 0x01010101u;
    const char *rows[3], *const nothing[3] = {(const char *)&outside, (const char *)&outside, (const char *)&outside};
    ptrdiff_t steps[3];
    const int before = tw_min(tw_max(-iw, 0), count), inside = tw_min(s->IW, iw + count) - (iw + before);
    for (int row = 0; row < 3; row++) {
        const int valid = ih + row >= 0 && ih + row < s->IH;
        rows[row] = valid ? (const char *)(x + ((ptrdiff_t)(ih + row) * s->IW + iw + before) * s->x_col) : nothing[0];
        steps[row] = valid ? s->x_col : 0;
    }
    const ptrdiff_t still[3] = {0, 0, 0};
    if (before)
        to = TW_FOR_BYTES(x, tw_columns_of)(to, before, nothing, still);
    if (inside > 0)
        to = TW_FOR_BYTES(x, tw_columns_of)(to, inside, rows, steps);
    if (before + tw_max(inside, 0) < count)
        (void)TW_FOR_BYTES(x, tw_columns_of)(to, count - before - tw_max(inside, 0), nothing, still);
}

static void depthwise_3x3_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int OH, int OW,
                             int X_n1, int X_n2, int strides_0, int strides_1, int pads_0, int pads_1, int x_zero_point,
                             void *scratch, const struct Epilogue *epilogue) {
    const struct tw_patch image = {.IH = X_n1, .IW = X_n2, .x_zero_point = x_zero_point, .x_col = G};
    uint32_t *const columns = scratch;
    int32_t *const out = (int32_t *)scratch + COLUMNS * 8;
    struct tw_column_weights weights[16];
    const int lines = (OW + LINE - 1) / LINE, length = (OW + lines - 1) / lines; /* of equal length */
    for (int g = 0; g < G; g += 16) {
        const int channels = tw_min(16, G - g);
        for (int j = 0; j < channels; j++) {
            const int8_t *w = W + (g + j) * 9;
            weights[j] =
                (struct tw_column_weights){{tw_halves(w[0], w[3]), tw_halves(w[1], w[4]), tw_halves(w[2], w[5])},
                                           {tw_halves(w[6], w[7]), tw_halves(w[8], 0)},
                                           B ? B[g + j] : 0};
        }
        for (int line = 0; line < N * OH; line++) {
            const T *x = X + (ptrdiff_t)(line / OH) * X_n1 * X_n2 * G + g;
            for (int ow = 0, pixels; ow < OW; ow += pixels) {
                pixels = tw_min(length, OW - ow);
                const int groups = strides_1 == 1 ? (pixels + 2) / 3 : (pixels + 1) / 2;
                for (int j = 0; j < channels; j += 4) {
                    depthwise_3x3_s8_columns(&image, x + j, line % OH * strides_0 - pads_0, ow * strides_1 - pads_1,
                                             (pixels - 1) * strides_1 + 3, columns);
                    for (int i = 0; i < 4; i++) {
                        const struct tw_columns job = {columns + i * 2, out + j + i, groups, weights + j + i};
                        if (strides_1 == 1)
                            tw_columns_next(&job);
                        else
                            tw_columns_every_other(&job);
                    }
                }
                STORE(epilogue, Y, out, ((ptrdiff_t)line * OW + ow) * G + g, G, g, pixels, channels);
            }
        }
    }
}
#undef LINE
#undef COLUMNS
