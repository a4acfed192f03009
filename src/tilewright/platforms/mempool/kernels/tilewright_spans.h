/* What depthwise convolutions share: four rows of an image become a column of each of four channels, so that a column of the
 * filter is one product of Xpulpimg. */
#ifndef TILEWRIGHT_SPANS_H
#define TILEWRIGHT_SPANS_H

#include "tilewright_pool.h"

/* An image, its windows and their results. */
struct tw_pool_windows {
    int N, G, OH, OW, KH, KW, X_n1, X_n2, X_s0, X_s1, X_s2, Y_s0, Y_s1, Y_s2, strides_0, strides_1, pads_0, pads_1;
    int dilations_0, dilations_1, zero;
};
#define TW_POOL_WINDOWS                                                                                                \
    {N,    G,    OH,   OW,        KH,        KW,     X_n1,   X_n2,        X_s0,        X_s1,        X_s2,              \
     Y_s0, Y_s1, Y_s2, strides_0, strides_1, pads_0, pads_1, dilations_0, dilations_1, x_zero_point}

/* Spans are four channels of at most 16 pixels of a line, or fewer where that leaves nothing to do for some cores. */
struct tw_pool_spans {
    int most, pieces, count;
};
static inline struct tw_pool_spans tw_pool_spans(const struct tw_pool_windows *windows, int parts) {
    const int lines = windows->N * windows->OH * (windows->G >> 2);
    const int least = (windows->OW + 15) >> 4, each = parts / lines < windows->OW ? parts / lines : windows->OW;
    const int most = (windows->OW - 1) / (each > least ? each : least) + 1, pieces = (windows->OW - 1) / most + 1;
    return (struct tw_pool_spans){most, pieces, lines * pieces};
}

/* Results of a span, `next` apart: their columns are `step` words apart, those of taps `dilation`, and those of the next four
 * rows `block`. */
struct tw_pool_span {
    int pixels, next, step, dilation, block, at, channel;
};

/* pv.shuffle2.b: each byte of the selector names one of the four of `low` (0 to 3) or of `high` (4 to 7). */
static inline uint32_t tw_pool_shuffle(uint32_t low, uint32_t high, uint32_t selector) {
    __asm__(".insn r 0x57, 1, 0x64, %0, %1, %2" : "+r"(low) : "r"(high), "r"(selector));
    return low;
}
/* Columns of `count` pixels, `next` bytes apart, whose four rows begin at `x`. */
static inline uint32_t *tw_pool_turned(const char *const x[4], const int next[4], int count, uint32_t *to) {
    const char *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
    for (; count > 0; count--, x0 += next[0], x1 += next[1], x2 += next[2], x3 += next[3], to += 4) {
        const uint32_t a = *(const uint32_t *)(const void *)x0, b = *(const uint32_t *)(const void *)x1;
        const uint32_t c = *(const uint32_t *)(const void *)x2, d = *(const uint32_t *)(const void *)x3;
        const uint32_t low = tw_pool_shuffle(a, b, 0x05010400u), high = tw_pool_shuffle(a, b, 0x07030602u);
        const uint32_t low2 = tw_pool_shuffle(c, d, 0x05010400u), high2 = tw_pool_shuffle(c, d, 0x07030602u);
        to[0] = tw_pool_shuffle(low, low2, 0x05040100u);
        to[1] = tw_pool_shuffle(low, low2, 0x07060302u);
        to[2] = tw_pool_shuffle(high, high2, 0x05040100u);
        to[3] = tw_pool_shuffle(high, high2, 0x07060302u);
    }
    return to;
}
/* Makes the columns of span `number`; rows outside the image are one word again and again. */
static inline struct tw_pool_span tw_pool_span(const struct tw_pool_windows *windows, const struct tw_pool_spans *spans,
                                               int number, const void *X, uint32_t *columns) {
    const uint32_t outside = (uint32_t)(windows->zero & 0xFF) * 0x01010101u;
    const int fours = windows->G >> 2, g = number % fours * 4, rest = number / fours;
    const int from = rest % spans->pieces * spans->most, line = rest / spans->pieces;
    const int oh = line % windows->OH, n = line / windows->OH;
    const int pixels = windows->OW - from < spans->most ? windows->OW - from : spans->most;
    const int ih = oh * windows->strides_0 - windows->pads_0, iw = from * windows->strides_1 - windows->pads_1;
    const int width = (pixels - 1) * windows->strides_1 + (windows->KW - 1) * windows->dilations_1 + 1;
    const int left = iw < 0 ? -iw : 0, right = windows->X_n2 - iw;
    const int begin = left < width ? left : width, end = right < begin ? begin : right < width ? right : width;
    const char *const image = (const char *)X + n * windows->X_s0 + (iw + begin) * windows->X_s2 + g;
    for (int top = 0; top < windows->KH; top += 4) {
        const char *x[4];
        int next[4];
        for (int i = 0; i < 4; i++) {
            const int row = ih + (top + i) * windows->dilations_0;
            const int inside = top + i < windows->KH && row >= 0 && row < windows->X_n1;
            x[i] = inside ? image + row * windows->X_s1 : (const char *)&outside;
            next[i] = inside ? windows->X_s2 : 0;
        }
        for (int i = 4 * begin; i > 0; i--)
            *columns++ = outside;
        columns = tw_pool_turned(x, next, end - begin, columns);
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

#endif
