/* Windows that are copied before they are multiplied, as the channels of a tap fill no words. */
#ifndef TILEWRIGHT_COPIED_H
#define TILEWRIGHT_COPIED_H

#include "tilewright_runs.h"

/* The window of one of four pixels of an image: rows of the filter at once where all taps lie inside, side by side, and single
 * taps elsewhere, `zero` outside. Loads lie ahead of stores, as words of other groups come after five cycles. */
#define TW_DEFINE_COPIED(NAME, TYPE)                                                                                   \
    static inline __attribute__((always_inline, unused)) void NAME(const struct tw_pool_taps *taps,                    \
                                                                   const struct tw_pool_pixels *pixels, int pixel,     \
                                                                   const TYPE *X, TYPE zero, TYPE *to) {               \
        const int together = taps->KW == 1 || (taps->dilations_1 == 1 && taps->X_s2 == taps->C);                       \
        const int first = pixels->col[pixel], inside = first >= 0 && first + taps->KW <= taps->X_n2;                   \
        const int wide = together && inside ? taps->KW : 1;                                                            \
        const TYPE *const x = X + pixels->from[pixel];                                                                 \
        for (int kh = 0; kh < taps->KH; kh++) {                                                                        \
            const int down = kh * taps->dilations_0, row = pixels->row[pixel] + down;                                  \
            for (int kw = 0; kw < taps->KW; kw += wide) {                                                              \
                const int right = kw * taps->dilations_1, col = first + right;                                         \
                int left = wide * taps->C;                                                                             \
                if (row >= 0 && row < taps->X_n1 && col >= 0 && col < taps->X_n2) {                                    \
                    const TYPE *from = x + down * taps->X_s1 + right * taps->X_s2;                                     \
                    for (; left >= 4; left -= 4, to += 4, from += 4) {                                                 \
                        const TYPE a = from[0], b = from[1], c = from[2], d = from[3];                                 \
                        to[0] = a, to[1] = b, to[2] = c, to[3] = d;                                                    \
                    }                                                                                                  \
                    for (; left > 0; left--)                                                                           \
                        *to++ = *from++;                                                                               \
                } else {                                                                                               \
                    for (; left > 0; left--)                                                                           \
                        *to++ = zero;                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
TW_DEFINE_COPIED(tw_pool_copied_bytes, int8_t)
TW_DEFINE_COPIED(tw_pool_copied_halves, int16_t)

/* One run of four windows of so many words each, which begins with word `skipped`. Of windows that are not there, the last one. */
static inline void tw_pool_run_of(const void *windows, int words, const struct tw_pool_pixels *pixels, int skipped,
                                  struct tw_pool_run runs[3]) {
    for (int i = 0; i < 4; i++)
        runs->a[i] = (const char *)windows + 4 * tw_min(i, pixels->count - 1) * words;
    runs->b = 0;
    runs->bytes = words * 16;
    tw_pool_turn(runs, 1, skipped * 16);
}

#endif
