/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1"}
pack: {W: "G,F,C,KH,KW -> G,F/4,KH,KW,C,F%4"}
epilogue: row
accumulate: [C]
cycles: "N*G*OH*OW*(((F+3)//4)*4*(1.2*C*KH*KW + 1.5*KH + 11) + 30)"
--- */
#include "tilewright_floats.h"

static void conv2d_f32_line(const struct tw_line_f32 *line, ptrdiff_t panel_size, const float *B, void *Y,
                            const struct Epilogue *epilogue) {
    float panel[16], out[4 * 16];
    for (int f = 0; f < line->channels; f += 16) {
        const int count = tw_min(16, line->channels - f);
        const float *w = line->w + f / 4 * panel_size;
        const float *bias = tw_bias_f32(B, line->channel + f, count, panel);
        for (int pixel = 0; pixel < line->pixels;) {
            const float *x = line->x + pixel * line->taps.x_pixel;
            const int done = tw_floats_block(line->pixels - pixel, count, &line->taps, x, w, panel_size, bias, out);
            const ptrdiff_t at = line->at + f + pixel * line->y_pixel;
            STORE(epilogue, Y, out, at, line->y_pixel, line->channel + f, done, count);
            pixel += done;
        }
    }
}

static void conv2d_f32(const float *X, const float *W, const float *B, void *Y, int N, int G, int F, int OH, int OW,
                       int C, int KH, int KW, int X_n1, int X_n2, int strides_0, int strides_1, int pads_0, int pads_1,
                       int dilations_0, int dilations_1, const struct Epilogue *epilogue) {
    if (KH * KW == 1 && strides_0 * strides_1 == 1 && X_n1 == OH && X_n2 == OW) {
        OW *= N * OH; /* pointwise: the image is one long line */
        X_n2 = OW;
        N = OH = X_n1 = 1;
    }
    const ptrdiff_t x_col = (ptrdiff_t)G * C, x_row = x_col * X_n2, panel_size = (ptrdiff_t)KH * KW * C * 4;
    const ptrdiff_t y_col = (ptrdiff_t)G * F, y_row = y_col * OW;
    const int one_run = dilations_1 == 1 && G == 1; /* the taps of a row are contiguous */
    const struct tw_span rows = tw_interior(OH, X_n1, KH, strides_0, dilations_0, pads_0);
    struct tw_span cols = tw_interior(OW, X_n2, KW, strides_1, dilations_1, pads_1);
    if (rows.end - rows.begin >= 4) /* columns left over by blocks of 4 pixels are better done downwards */
        cols.end -= (cols.end - cols.begin) % 4;
    for (int image = 0; image < N * G; image++) {
        const int n = image / G, g = image % G;
        const float *x = X + n * x_row * X_n1 + (ptrdiff_t)g * C;
        struct tw_line_f32 line = {.channel = g * F, .channels = F};
        const float *w = W + (ptrdiff_t)g * ((F + 3) / 4) * panel_size;
        const ptrdiff_t y = n * y_row * OH + (ptrdiff_t)g * F;
        line.taps.x_row = x_row * dilations_0;
        line.taps.x_col = x_col * dilations_1;
        line.taps.w_row = (ptrdiff_t)KW * C * 4;
        line.taps.w_col = (ptrdiff_t)C * 4;
        for (int oh = 0; oh < OH; oh++) {
            const int ih = oh * strides_0 - pads_0;
            const struct tw_span kh = tw_inside(ih, X_n1, KH, dilations_0);
            line.taps.rows = kh.end - kh.begin;
            line.taps.cols = one_run ? 1 : KW;
            line.taps.len = one_run ? KW * C : C;
            line.taps.x_pixel = x_col * strides_1;
            line.y_pixel = y_col;
            line.w = w + kh.begin * line.taps.w_row;
            line.pixels = cols.end - cols.begin;
            line.x = x + (ih + kh.begin * dilations_0) * x_row + (cols.begin * strides_1 - pads_1) * x_col;
            line.at = y + oh * y_row + cols.begin * y_col;
            conv2d_f32_line(&line, panel_size, B, Y, epilogue);
        }
        for (int ow = 0; ow < OW; ow++) {
            if (ow == cols.begin)
                ow = cols.end;
            if (ow >= OW)
                break;
            const int iw = ow * strides_1 - pads_1;
            const struct tw_span kw = tw_inside(iw, X_n2, KW, dilations_1);
            line.taps.cols = one_run ? 1 : kw.end - kw.begin;
            line.taps.len = one_run ? (kw.end - kw.begin) * C : C;
            line.taps.x_pixel = x_row * strides_0;
            line.y_pixel = y_row;
            for (int oh = 0; oh < OH; oh += line.pixels) {
                const int ih = oh * strides_0 - pads_0;
                const struct tw_span kh = tw_inside(ih, X_n1, KH, dilations_0);
                line.taps.rows = kh.end - kh.begin;
                line.pixels = oh >= rows.begin && oh < rows.end ? rows.end - oh : 1;
                line.x = x + (ih + kh.begin * dilations_0) * x_row + (iw + kw.begin * dilations_1) * x_col;
                line.w = w + kh.begin * line.taps.w_row + kw.begin * line.taps.w_col;
                line.at = y + oh * y_row + ow * y_col;
                conv2d_f32_line(&line, panel_size, B, Y, epilogue);
            }
        }
    }
}
