/* What convolutions list for four pixels, of elements of any size, and sums of halfwords over such a list. */
#ifndef TILEWRIGHT_LIST_H
#define TILEWRIGHT_LIST_H

#include "tilewright_runs.h"

TW_DEFINE_RUNS(tw_pool_runs_s16, TW_POOL_S16)

/* The taps of a filter, and the image that it reads: elements of `width` bytes. */
struct tw_pool_taps {
    int width, KH, KW, C, X_n1, X_n2, X_s1, X_s2, dilations_0, dilations_1;
};
#define TW_POOL_TAPS(width) {width, KH, KW, C, X_n1, X_n2, X_s1, X_s2, dilations_0, dilations_1}

/* Whether a window of any pixel reaches over an edge of the image. */
static inline int tw_pool_over(const struct tw_pool_image *image, const struct tw_pool_taps *taps) {
    const int below = (image->OH - 1) * image->strides_0 - image->pads_0 + (taps->KH - 1) * taps->dilations_0;
    const int beside = (image->OW - 1) * image->strides_1 - image->pads_1 + (taps->KW - 1) * taps->dilations_1;
    return image->pads_0 > 0 || image->pads_1 > 0 || below >= taps->X_n1 || beside >= taps->X_n2;
}

/* Lists what windows of four pixels cover: taps of a row are one run where all of them lie inside, side by side. Cores that
 * read the same words begin at different ones, the `place`th. Taps outside the image are read from `outside`. */
static inline __attribute__((always_inline)) void tw_pool_list(const struct tw_pool_taps *taps,
                                                               const struct tw_pool_pixels *pixels, const char *X,
                                                               const uint32_t *outside, int place,
                                                               struct tw_pool_run *runs) {
    const int together = taps->KW == 1 || (taps->dilations_1 == 1 && taps->X_s2 == taps->C);
    const int row_bytes = taps->X_s1 * taps->width, col_bytes = taps->X_s2 * taps->width;
    int least = pixels->col[0], most = least;
    for (int i = 1; i < 4; i++) {
        least = pixels->col[i] < least ? pixels->col[i] : least;
        most = pixels->col[i] > most ? pixels->col[i] : most;
    }
    const int inside = least >= 0 && most + (taps->KW - 1) * taps->dilations_1 < taps->X_n2;
    const int wide = together && inside ? taps->KW : 1;
    const int parts = taps->KH * taps->KW / wide, bytes = 4 * wide * taps->C * taps->width;
    const int words = taps->KH * taps->KW * taps->C * taps->width >> 2;
    const int start = place % words << 4, turned = start / bytes;
    struct tw_pool_run *run = runs + (turned ? parts - turned : 0);
    for (int kh = 0, b = 0; kh < taps->KH; kh++) {
        for (int kw = 0; kw < taps->KW; kw += wide, b += bytes) {
            const int down = kh * taps->dilations_0, right = kw * taps->dilations_1;
            const char *const x = X + down * row_bytes + right * col_bytes;
            for (int i = 0; i < 4; i++) {
                const int row = pixels->row[i] + down, col = pixels->col[i] + right;
                const int there = row >= 0 && row < taps->X_n1 && col >= 0 && col < taps->X_n2;
                run->a[i] = there ? x + pixels->from[i] * taps->width : (const char *)outside;
            }
            run->b = b;
            run->bytes = bytes;
            if (++run == runs + parts)
                run = runs;
        }
    }
    tw_pool_turn(runs, parts, start - turned * bytes);
}

#endif
