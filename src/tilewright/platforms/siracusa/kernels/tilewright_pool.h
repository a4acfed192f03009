/* Windows of pooling, line by line. */
#ifndef TILEWRIGHT_POOL_H
#define TILEWRIGHT_POOL_H

#include "tilewright_dot.h"
#include "tilewright_kernel.h"

/* Pooling, from the names of a kernel's parameters. */
struct tw_pool {
    const void *X;
    int N, C, OH, OW, KH, KW, X_n1, X_n2, X_s0, X_s1, X_s2, Y_s0, Y_s1, Y_s2;
    int strides_0, strides_1, pads_0, pads_1, dilations_0, dilations_1;
};
#define TW_POOL                                                                                                        \
    ((struct tw_pool){X,    N,    C,    OH,   OW,        KH,        KW,     X_n1,   X_n2,        X_s0,       X_s1,     \
                      X_s2, Y_s0, Y_s1, Y_s2, strides_0, strides_1, pads_0, pads_1, dilations_0, dilations_1})

/* Neighbours in a line whose windows have as many taps inside the image. */
struct tw_pool_line {
    const void *x;       /* the first tap of the first one */
    int rows, columns;   /* of taps */
    int step, jump;      /* bytes from tap to tap, and from the end of a row to the next one */
    int pixels, x_pixel; /* how many, and how many bytes lie between two */
    int at, y_pixel;     /* the first result, and how many elements lie between two */
    int channels;
};
/* What TW_WINDOW and its taps ask for, from variables of these names. */
#define TW_POOL_STEPS [rows] "r"(rows), [columns] "r"(columns), [step] "r"(step), [jump] "r"(jump)
typedef void tw_pool_action(const struct tw_pool_line *line, void *Y, const void *epilogue);

/* Does something for all lines of results: at once for pixels whose windows lie wholly inside, for others one by one.
 * Every window has a tap inside the image, as ONNX demands. */
TW_INLINE void tw_pool_lines(const struct tw_pool s, const int size, tw_pool_action *action, void *Y,
                             const void *epilogue) {
    const int x_row = s.X_s1 * s.dilations_0, x_col = s.X_s2 * s.dilations_1;
    const struct tw_span inner = tw_interior(s.OW, s.X_n2, s.KW, s.strides_1, s.dilations_1, s.pads_1);
    struct tw_pool_line line = {
        .step = x_col * size, .x_pixel = s.strides_1 * s.X_s2 * size, .y_pixel = s.Y_s2, .channels = s.C};
    for (int n = 0; n < s.N; n++)
        for (int oh = 0; oh < s.OH; oh++) {
            const int ih = oh * s.strides_0 - s.pads_0;
            const struct tw_span kh = tw_inside(ih, s.X_n1, s.KH, s.dilations_0);
            line.rows = kh.end - kh.begin;
            for (int ow = 0; ow < s.OW; ow += line.pixels) {
                const int iw = ow * s.strides_1 - s.pads_1;
                const struct tw_span kw = tw_inside(iw, s.X_n2, s.KW, s.dilations_1);
                line.columns = kw.end - kw.begin;
                line.jump = (x_row - line.columns * x_col) * size;
                line.pixels = ow == inner.begin ? tw_max(inner.end - ow, 1) : 1;
                line.x = (const char *)s.X +
                         (n * s.X_s0 + ih * s.X_s1 + kh.begin * x_row + iw * s.X_s2 + kw.begin * x_col) * size;
                line.at = n * s.Y_s0 + oh * s.Y_s1 + ow * s.Y_s2;
                action(&line, Y, epilogue);
            }
        }
}

#endif
