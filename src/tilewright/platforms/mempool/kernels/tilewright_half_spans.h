/* Spans of depthwise convolutions of halfwords: two rows of an image become a column of each of four channels. */
#ifndef TILEWRIGHT_HALF_SPANS_H
#define TILEWRIGHT_HALF_SPANS_H

#include "tilewright_spans.h"

/* pv.pack and pv.pack.h: the first halfwords, or the second ones, of two words. */
static inline uint32_t tw_pool_firsts(uint32_t low, uint32_t high) {
    __asm__(".insn r 0x57, 0, 0x68, %0, %1, %2" : "=r"(low) : "r"(high), "r"(low));
    return low;
}
static inline uint32_t tw_pool_seconds(uint32_t low, uint32_t high) {
    __asm__(".insn r 0x57, 0, 0x69, %0, %1, %2" : "=r"(low) : "r"(high), "r"(low));
    return low;
}
/* Columns of `count` pixels, `next` bytes apart, whose two rows begin at `x`. */
static inline uint32_t *tw_pool_paired(const char *const x[2], const int next[2], int count, uint32_t *to) {
    const char *x0 = x[0], *x1 = x[1];
    for (; count > 0; count--, x0 += next[0], x1 += next[1], to += 4) {
        const uint32_t *const a = (const void *)x0, *const b = (const void *)x1;
        const uint32_t a0 = a[0], a1 = a[1], b0 = b[0], b1 = b[1];
        to[0] = tw_pool_firsts(a0, b0);
        to[1] = tw_pool_seconds(a0, b0);
        to[2] = tw_pool_firsts(a1, b1);
        to[3] = tw_pool_seconds(a1, b1);
    }
    return to;
}

/* Makes the columns of span `number`; rows outside the image are the same again and again. */
static inline struct tw_pool_span tw_pool_half_span(const struct tw_pool_windows *windows,
                                                    const struct tw_pool_spans *spans, int number, const int16_t *X,
                                                    uint32_t *columns) {
    const uint32_t outside = (uint32_t)(windows->zero & 0xFFFF) * 0x00010001u, beyond[2] = {outside, outside};
    const int fours = windows->G >> 2, g = number % fours * 4, rest = number / fours;
    const int from = rest % spans->pieces * spans->most, line = rest / spans->pieces;
    const int oh = line % windows->OH, n = line / windows->OH;
    const int pixels = windows->OW - from < spans->most ? windows->OW - from : spans->most;
    const int ih = oh * windows->strides_0 - windows->pads_0, iw = from * windows->strides_1 - windows->pads_1;
    const int width = (pixels - 1) * windows->strides_1 + (windows->KW - 1) * windows->dilations_1 + 1;
    const int left = iw < 0 ? -iw : 0, right = windows->X_n2 - iw;
    const int begin = left < width ? left : width, end = right < begin ? begin : right < width ? right : width;
    const int16_t *const image = X + n * windows->X_s0 + (iw + begin) * windows->X_s2 + g;
    for (int top = 0; top < windows->KH; top += 2) {
        const char *x[2];
        int next[2];
        for (int i = 0; i < 2; i++) {
            const int row = ih + (top + i) * windows->dilations_0;
            const int inside = top + i < windows->KH && row >= 0 && row < windows->X_n1;
            x[i] = inside ? (const char *)(image + row * windows->X_s1) : (const char *)beyond;
            next[i] = inside ? windows->X_s2 * 2 : 0;
        }
        for (int i = 4 * begin; i > 0; i--)
            *columns++ = outside;
        columns = tw_pool_paired(x, next, end - begin, columns);
        for (int i = 4 * (width - end); i > 0; i--)
            *columns++ = outside;
    }
    return (struct tw_pool_span){pixels,
                                 windows->Y_s2,
                                 4 * windows->strides_1,
                                 4 * windows->dilations_1,
                                 4 * width,
                                 n * windows->Y_s0 + oh * windows->Y_s1 + from * windows->Y_s2 + g,
                                 g};
}

/* Adds the products of one column of four channels. All loads lie before them: words of other groups come after five cycles. */
#define TW_POOL_HALF_COLUMN(x, y, a, b, c, d)                                                                          \
    do {                                                                                                               \
        uint32_t x0, x1, x2, x3, y0, y1, y2, y3;                                                                       \
        __asm__ volatile(TW_NEXT("%[x0]", "%[p]") TW_NEXT("%[y0]", "%[q]") TW_NEXT("%[x1]", "%[p]")                    \
                             TW_NEXT("%[y1]", "%[q]") TW_NEXT("%[x2]", "%[p]") TW_NEXT("%[y2]", "%[q]")                \
                                 TW_NEXT("%[x3]", "%[p]") TW_NEXT("%[y3]", "%[q]")                                     \
                                     TW_ADD_DOT(TW_POOL_S16, "%[s0]", "%[x0]", "%[y0]")                                \
                                         TW_ADD_DOT(TW_POOL_S16, "%[s1]", "%[x1]", "%[y1]")                            \
                                             TW_ADD_DOT(TW_POOL_S16, "%[s2]", "%[x2]", "%[y2]")                        \
                                                 TW_ADD_DOT(TW_POOL_S16, "%[s3]", "%[x3]", "%[y3]")                    \
                         : [p] "+r"(x), [q] "+r"(y), [s0] "+r"(a), [s1] "+r"(b), [s2] "+r"(c), [s3] "+r"(d),           \
                           [x0] "=&r"(x0), [x1] "=&r"(x1), [x2] "=&r"(x2), [x3] "=&r"(x3), [y0] "=&r"(y0),             \
                           [y1] "=&r"(y1), [y2] "=&r"(y2), [y3] "=&r"(y3)                                              \
                         :                                                                                             \
                         : "memory");                                                                                  \
    } while (0)

#endif
