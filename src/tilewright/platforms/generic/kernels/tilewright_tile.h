/* Register tiles: the parts of convolutions, matrix products and pools that do the arithmetic. They know nothing of
 * epilogues, so all kernels of a program share one copy. Included by tilewright_kernel.h. */
#ifndef TILEWRIGHT_TILE_H
#define TILEWRIGHT_TILE_H

#include "tilewright_kernel.h"

/* A platform whose compiler does not know its instructions brings tiles of its own, and may want float tiles of fewer
 * channels where 64 sums do not fit its registers. */
#if __has_include("tilewright_dot.h")
#include "tilewright_dot.h"
#endif
#ifndef TW_TILE_WIDTH
#define TW_TILE_WIDTH 16
#define TW_TILE_UNROLL
#endif

/* The unit in which a float tile is written down. gcc turns unrolled scalars into vectors by itself; clang only does it
 * when told, and contracts vector expressions. */
#if defined(__clang__)
typedef float tw_lane __attribute__((vector_size(16), aligned(4), may_alias));
#define TW_LANES 4
#define TW_LANE_FMA(a, b, c) ((a) * (b) + (c))
#else
typedef float tw_lane;
#define TW_LANES 1
#define TW_LANE_FMA(a, b, c) TW_FMA((a), (b), (c))
#endif

/* Where a tile of output pixels finds its taps: `rows` x `cols` runs of `len` contiguous inputs. */
struct tw_taps {
    int rows, cols, len;
    ptrdiff_t x_pixel, x_row, x_col; /* element distance of neighbouring pixels, rows, columns */
    ptrdiff_t w_row, w_col;          /* the same in the weights, which hold 16 lanes per input */
};

/* out[PIXELS][WIDTH] = bias + sum over taps of x[pixel, tap] * w[tap, lane]; PIXELS and WIDTH are constants. */
TW_INLINE void tw_tile_f32(const int PIXELS, const int WIDTH, const struct tw_taps t, const float *x, const float *w,
                           const float *bias, float *out) {
    tw_lane acc[4][16 / TW_LANES];
    const int lanes = WIDTH / TW_LANES;
    TW_UNROLL for (int i = 0; i < PIXELS; i++) {
        TW_UNROLL for (int j = 0; j < lanes; j++) acc[i][j] = ((const tw_lane *)(const void *)bias)[j];
    }
    for (int row = 0; row < t.rows; row++) {
        for (int col = 0; col < t.cols; col++) {
            const float *a = x + row * t.x_row + col * t.x_col;
            const float *b = w + row * t.w_row + col * t.w_col;
            TW_TILE_UNROLL for (int k = 0; k < t.len; k++, b += 16) {
                TW_UNROLL for (int i = 0; i < PIXELS; i++) {
                    const float value = a[i * t.x_pixel + k];
                    TW_UNROLL for (int j = 0; j < lanes; j++) {
                        acc[i][j] = TW_LANE_FMA(value, ((const tw_lane *)(const void *)b)[j], acc[i][j]);
                    }
                }
            }
        }
    }
    TW_UNROLL for (int i = 0; i < PIXELS; i++) {
        TW_UNROLL for (int j = 0; j < lanes; j++)((tw_lane *)(void *)(out + i * 16))[j] = acc[i][j];
    }
}

/* Computes a block of at most 4 pixels and returns how many were done. Panels of at most 8 channels skip the padding.
 */
TW_APART int tw_block_f32(int pixels, int channels, struct tw_taps t, const float *x, const float *w, const float *bias,
                          float *out) {
    if (TW_TILE_WIDTH < 16) {
        for (int j = 0; j < channels; j += TW_TILE_WIDTH) {
            if (pixels >= 4)
                tw_tile_f32(4, TW_TILE_WIDTH, t, x, w + j, bias + j, out + j);
            else
                tw_tile_f32(1, TW_TILE_WIDTH, t, x, w + j, bias + j, out + j);
        }
        return pixels >= 4 ? 4 : 1;
    }
    if (pixels >= 4) {
        if (channels > 8)
            tw_tile_f32(4, 16, t, x, w, bias, out);
        else
            tw_tile_f32(4, 8, t, x, w, bias, out);
        return 4;
    }
    if (pixels >= 2) {
        tw_tile_f32(2, 16, t, x, w, bias, out);
        return 2;
    }
    tw_tile_f32(1, 16, t, x, w, bias, out);
    return 1;
}

/* The bias of the 16 channels from `first` on: in place if it is there, else copied to `panel` with zeros added. */
static inline const float *tw_bias_f32(const float *bias, int first, int count, float *panel) {
    if (bias && count == 16)
        return bias + first;
    for (int j = 0; j < 16; j++)
        panel[j] = bias && j < count ? bias[first + j] : 0.0f;
    return panel;
}

/* The outputs on one axis whose taps all lie inside the input, and the taps inside the input for one output. */
struct tw_span {
    int begin, end;
};
static inline struct tw_span tw_interior(int outputs, int inputs, int taps, int stride, int dilation, int pad) {
    const int last = inputs - 1 - (taps - 1) * dilation + pad;
    const int begin = tw_min((tw_max(pad, 0) + stride - 1) / stride, outputs);
    const int end = last < 0 ? 0 : tw_min(last / stride + 1, outputs);
    return (struct tw_span){begin, tw_max(begin, end)};
}
static inline struct tw_span tw_inside(int start, int inputs, int taps, int dilation) {
    if (start >= 0 && start + (taps - 1) * dilation < inputs)
        return (struct tw_span){0, taps}; /* the usual case, spared the divisions */
    const int begin = start >= 0 ? 0 : tw_min((dilation - 1 - start) / dilation, taps);
    const int end = start >= inputs ? 0 : tw_min((inputs - 1 - start) / dilation + 1, taps);
    return (struct tw_span){begin, tw_max(begin, end)};
}

/* Integer dot products of rows: out[i * 16 + j] = bias[j] + a_row[i] . b_row[j] for 4 or 1 rows of `a` and 4 of `b`. The
 * length is a multiple of 16 (pad one side with zeros); compilers turn the 16 sums into dot-product instructions. */
#ifndef TW_DOT_TILES
#define TW_DEFINE_DOT_TILE(NAME, TYPE)                                                                                 \
    TW_INLINE void NAME##_tile(const int ROWS, const TYPE *a, ptrdiff_t a_row, const int8_t *b, ptrdiff_t b_row,       \
                               int length, const int32_t *bias, int32_t *out) {                                        \
        int32_t sum[4][4];                                                                                             \
        const int n = length & ~15;                                                                                    \
        TW_UNROLL for (int i = 0; i < ROWS; i++) { TW_UNROLL for (int j = 0; j < 4; j++) sum[i][j] = bias[j]; }        \
        for (int k = 0; k < n; k++) {                                                                                  \
            TW_UNROLL for (int i = 0; i < ROWS; i++) {                                                                 \
                TW_UNROLL for (int j = 0; j < 4; j++) sum[i][j] += a[i * a_row + k] * b[j * b_row + k];                \
            }                                                                                                          \
        }                                                                                                              \
        TW_UNROLL for (int i = 0; i < ROWS; i++) {                                                                     \
            TW_UNROLL for (int j = 0; j < 4; j++) out[i * 16 + j] = sum[i][j];                                         \
        }                                                                                                              \
    }
TW_DEFINE_DOT_TILE(tw_dot_rows_s8, int8_t)
TW_DEFINE_DOT_TILE(tw_dot_rows_u8, uint8_t)
#endif

/* The same for `count` <= 16 rows of b (read up to a multiple of 4) and 4 or 1 rows of a. */
#define TW_DEFINE_DOT_ROWS(NAME, TYPE)                                                                                 \
    TW_APART void NAME(int rows, int count, const TYPE *a, ptrdiff_t a_row, const int8_t *b, ptrdiff_t b_row,          \
                       int length, const int32_t *bias, int32_t *out) {                                                \
        for (int j = 0; j < count; j += 4) {                                                                           \
            if (rows == 4)                                                                                             \
                NAME##_tile(4, a, a_row, b + j * b_row, b_row, length, bias + j, out + j);                             \
            else                                                                                                       \
                NAME##_tile(1, a, a_row, b + j * b_row, b_row, length, bias + j, out + j);                             \
        }                                                                                                              \
    }
TW_DEFINE_DOT_ROWS(tw_dot_rows_s8, int8_t)
TW_DEFINE_DOT_ROWS(tw_dot_rows_u8, uint8_t)
#define tw_dot_rows(rows, count, a, ...)                                                                               \
    _Generic((a), const int8_t *: tw_dot_rows_s8, const uint8_t *: tw_dot_rows_u8)(rows, count, a, __VA_ARGS__)

/* The bias of the 16 channels from `first` on: in place if it is there, else copied to `panel` with zeros added. */
static inline const int32_t *tw_bias_s32(const int32_t *bias, int first, int count, int32_t *panel) {
    if (bias && count == 16)
        return bias + first;
    for (int j = 0; j < 16; j++)
        panel[j] = bias && j < count ? bias[first + j] : 0;
    return panel;
}

static inline int tw_round16(int n) { return (n + 15) & ~15; }

/* memcpy for the short runs of an image patch, where the call would cost more than the copy. */
static inline void tw_copy(void *to, const void *from, ptrdiff_t bytes) {
    char *d = to;
    const char *s = from;
    if (bytes >= 16) {
        for (ptrdiff_t i = 0; i + 16 < bytes; i += 16)
            memcpy(d + i, s + i, 16);
        memcpy(d + bytes - 16, s + bytes - 16, 16);
    } else if (bytes >= 8) {
        memcpy(d, s, 8);
        memcpy(d + bytes - 8, s + bytes - 8, 8);
    } else if (bytes >= 4) {
        memcpy(d, s, 4);
        memcpy(d + bytes - 4, s + bytes - 4, 4);
    } else {
        for (ptrdiff_t i = 0; i < bytes; i++)
            d[i] = s[i];
    }
}

/* A line of pixels, across or down the image, that all see the same taps. */
struct tw_line_f32 {
    struct tw_taps taps;
    const float *x, *w;
    ptrdiff_t at, y_pixel; /* first output and distance of the next pixel */
    int pixels, channel, channels;
};

/* A convolution of floats, from the names of a kernel's parameters. */
struct tw_conv_f32 {
    const float *X, *W;
    int N, G, F, OH, OW, C, KH, KW, IH, IW, strides_0, strides_1, pads_0, pads_1, dilations_0, dilations_1;
};
#define TW_CONV_F32                                                                                                    \
    ((struct tw_conv_f32){X, W, N, G, F, OH, OW, C, KH, KW, X_n1, X_n2, strides_0, strides_1, pads_0, pads_1,          \
                          dilations_0, dilations_1})
typedef void tw_line_action_f32(const struct tw_line_f32 *line, ptrdiff_t panel_size, const float *B, void *Y,
                                const void *epilogue);

/* Does something for all lines of a convolution: along the image, of up to `most` pixels, and downwards for what is left.
 * Filters lie in panels of `WIDTH`. */
TW_INLINE void tw_conv_lines_f32(struct tw_conv_f32 s, const int WIDTH, const int most, tw_line_action_f32 *action,
                                 const float *B, void *Y, const void *epilogue) {
    if (s.KH * s.KW == 1 && s.strides_0 * s.strides_1 == 1 && s.IH == s.OH && s.IW == s.OW) {
        s.OW *= s.N * s.OH; /* pointwise: the image is one long line */
        s.IW = s.OW;
        s.N = s.OH = s.IH = 1;
    }
    const ptrdiff_t x_col = (ptrdiff_t)s.G * s.C, x_row = x_col * s.IW,
                    panel_size = (ptrdiff_t)s.KH * s.KW * s.C * WIDTH;
    const ptrdiff_t y_col = (ptrdiff_t)s.G * s.F, y_row = y_col * s.OW;
    const int one_run = s.dilations_1 == 1 && s.G == 1; /* the taps of a row are contiguous */
    const struct tw_span rows = tw_interior(s.OH, s.IH, s.KH, s.strides_0, s.dilations_0, s.pads_0);
    struct tw_span cols = tw_interior(s.OW, s.IW, s.KW, s.strides_1, s.dilations_1, s.pads_1);
    if (rows.end - rows.begin >= 4) /* columns left over by blocks of 4 pixels are better done downwards */
        cols.end -= (cols.end - cols.begin) % 4;
    for (int image = 0; image < s.N * s.G; image++) {
        const int n = image / s.G, g = image % s.G;
        const float *x = s.X + n * x_row * s.IH + (ptrdiff_t)g * s.C;
        struct tw_line_f32 line = {.channel = g * s.F, .channels = s.F};
        const float *w = s.W + (ptrdiff_t)g * ((s.F + WIDTH - 1) / WIDTH) * panel_size;
        const ptrdiff_t y = n * y_row * s.OH + (ptrdiff_t)g * s.F;
        line.taps.x_row = x_row * s.dilations_0;
        line.taps.x_col = x_col * s.dilations_1;
        line.taps.w_row = (ptrdiff_t)s.KW * s.C * WIDTH;
        line.taps.w_col = (ptrdiff_t)s.C * WIDTH;
        for (int oh = 0; oh < s.OH; oh++) {
            const int ih = oh * s.strides_0 - s.pads_0;
            const struct tw_span kh = tw_inside(ih, s.IH, s.KH, s.dilations_0);
            line.taps.rows = kh.end - kh.begin;
            line.taps.cols = one_run ? 1 : s.KW;
            line.taps.len = one_run ? s.KW * s.C : s.C;
            line.taps.x_pixel = x_col * s.strides_1;
            line.y_pixel = y_col;
            line.w = w + kh.begin * line.taps.w_row;
            for (int ow = cols.begin; ow < cols.end; ow += line.pixels) {
                line.pixels = tw_min(cols.end - ow, most);
                line.x = x + (ih + kh.begin * s.dilations_0) * x_row + (ow * s.strides_1 - s.pads_1) * x_col;
                line.at = y + oh * y_row + ow * y_col;
                action(&line, panel_size, B, Y, epilogue);
            }
        }
        for (int ow = 0; ow < s.OW; ow++) {
            if (ow == cols.begin)
                ow = cols.end;
            if (ow >= s.OW)
                break;
            const int iw = ow * s.strides_1 - s.pads_1;
            const struct tw_span kw = tw_inside(iw, s.IW, s.KW, s.dilations_1);
            line.taps.cols = one_run ? 1 : kw.end - kw.begin;
            line.taps.len = one_run ? (kw.end - kw.begin) * s.C : s.C;
            line.taps.x_pixel = x_row * s.strides_0;
            line.y_pixel = y_row;
            for (int oh = 0; oh < s.OH; oh += line.pixels) {
                const int ih = oh * s.strides_0 - s.pads_0;
                const struct tw_span kh = tw_inside(ih, s.IH, s.KH, s.dilations_0);
                line.taps.rows = kh.end - kh.begin;
                line.pixels = oh >= rows.begin && oh < rows.end ? rows.end - oh : 1;
                line.x = x + (ih + kh.begin * s.dilations_0) * x_row + (iw + kw.begin * s.dilations_1) * x_col;
                line.w = w + kh.begin * line.taps.w_row + kw.begin * line.taps.w_col;
                line.at = y + oh * y_row + ow * y_col;
                action(&line, panel_size, B, Y, epilogue);
            }
        }
    }
}

/* How the patch of an output pixel lies in an image of bytes. */
struct tw_patch {
    int C, KH, KW, IH, IW, strides_0, strides_1, pads_0, pads_1, dilations_0, dilations_1, x_zero_point;
    ptrdiff_t x_col; /* distance of neighbouring pixels: C, or more where C is one group of several */
};
/* One from the names of a kernel's parameters. */
#define TW_PATCH(channels, distance)                                                                                   \
    {channels, KH,     KW,          X_n1,        X_n2,         strides_0, strides_1,                                   \
     pads_0,   pads_1, dilations_0, dilations_1, x_zero_point, distance}

/* Copies the taps of one output pixel side by side; taps outside the image are the zero point. */
TW_APART void tw_gather(const struct tw_patch *s, const void *x, int oh, int ow, void *patch) {
    const int ih = oh * s->strides_0 - s->pads_0, iw = ow * s->strides_1 - s->pads_1;
    const struct tw_span kh = tw_inside(ih, s->IH, s->KH, s->dilations_0);
    const struct tw_span kw = tw_inside(iw, s->IW, s->KW, s->dilations_1);
    const ptrdiff_t width = (ptrdiff_t)s->KW * s->C;
    if ((kh.end - kh.begin) * (kw.end - kw.begin) < s->KH * s->KW)
        memset(patch, s->x_zero_point, (size_t)(s->KH * width));
    for (int row = kh.begin; row < kh.end; row++) {
        const char *from = (const char *)x + ((ptrdiff_t)(ih + row * s->dilations_0) * s->IW + iw) * s->x_col;
        char *to = (char *)patch + row * width;
        if (s->dilations_1 == 1 && s->x_col == s->C) {
            tw_copy(to + kw.begin * s->C, from + kw.begin * s->x_col, (ptrdiff_t)(kw.end - kw.begin) * s->C);
        } else {
            for (int col = kw.begin; col < kw.end; col++)
                tw_copy(to + col * s->C, from + col * s->dilations_1 * s->x_col, s->C);
        }
    }
}

/* Depthwise: the taps of neighbouring pixels inside the image, as distances in X and the part of the kernel used. */
struct tw_window {
    ptrdiff_t x_pixel, x_row, x_col;
    struct tw_span kh, kw;
    int KW;
};

/* out[PIXELS][WIDTH] = bias + sum over the taps; PIXELS and WIDTH are constants. */
TW_INLINE void tw_depthwise_tile_f32(const int PIXELS, const int WIDTH, const struct tw_window t, const float *x,
                                     const float *w, const float *bias, float *out) {
    tw_lane acc[4][16 / TW_LANES];
    const int lanes = WIDTH / TW_LANES;
    TW_UNROLL for (int i = 0; i < PIXELS; i++) {
        TW_UNROLL for (int j = 0; j < lanes; j++) acc[i][j] = ((const tw_lane *)(const void *)bias)[j];
    }
    for (int row = t.kh.begin; row < t.kh.end; row++) {
        for (int col = t.kw.begin; col < t.kw.end; col++) {
            const float *a = x + row * t.x_row + col * t.x_col;
            const tw_lane *b = (const tw_lane *)(const void *)(w + (row * t.KW + col) * 16);
            TW_UNROLL for (int i = 0; i < PIXELS; i++) {
                TW_UNROLL for (int j = 0; j < lanes; j++) {
                    const tw_lane value = ((const tw_lane *)(const void *)(a + i * t.x_pixel))[j];
                    acc[i][j] = TW_LANE_FMA(value, b[j], acc[i][j]);
                }
            }
        }
    }
    TW_UNROLL for (int i = 0; i < PIXELS; i++) {
        TW_UNROLL for (int j = 0; j < lanes; j++)((tw_lane *)(void *)(out + i * 16))[j] = acc[i][j];
    }
}

/* One or four pixels of 16, 8 or fewer channels. */
TW_APART void tw_depthwise_f32(int pixels, int channels, struct tw_window t, const float *x, const float *w,
                               const float *bias, float *out) {
    if (TW_TILE_WIDTH < 16 && channels % TW_TILE_WIDTH == 0) {
        for (int j = 0; j < channels; j += TW_TILE_WIDTH) {
            if (pixels == 4)
                tw_depthwise_tile_f32(4, TW_TILE_WIDTH, t, x + j, w + j, bias + j, out + j);
            else
                tw_depthwise_tile_f32(1, TW_TILE_WIDTH, t, x + j, w + j, bias + j, out + j);
        }
    } else if (channels == 16 && pixels == 4) {
        tw_depthwise_tile_f32(4, 16, t, x, w, bias, out);
    } else if (channels == 16) {
        tw_depthwise_tile_f32(1, 16, t, x, w, bias, out);
    } else if (channels == 8 && pixels == 4) {
        tw_depthwise_tile_f32(4, 8, t, x, w, bias, out);
    } else if (channels == 8) {
        tw_depthwise_tile_f32(1, 8, t, x, w, bias, out);
    } else {
        for (int i = 0; i < pixels * 16; i++) {
            float acc = bias[i % 16];
            if (i % 16 >= channels)
                continue;
            for (int row = t.kh.begin; row < t.kh.end; row++) {
                for (int col = t.kw.begin; col < t.kw.end; col++) {
                    const ptrdiff_t tap = i / 16 * t.x_pixel + i % 16 + row * t.x_row + col * t.x_col;
                    acc = TW_FMA(x[tap], w[(row * t.KW + col) * 16 + i % 16], acc);
                }
            }
            out[i] = acc;
        }
    }
}

/* The taps of one pixel of a byte image, and by their offset of those that follow in the interior of a line. */
struct tw_tap_list {
    const char *x[64];
    ptrdiff_t moves[64]; /* a mask for the offset: zero for a tap outside the image, else all ones */
    int count;
};

/* Lists the taps of the pixel at (oh, ow); those outside the image are read from `outside`. */
static inline void tw_list_taps(struct tw_tap_list *taps, const struct tw_patch *s, const void *x, int oh, int ow,
                                const void *outside) {
    taps->count = 0;
    for (int row = 0; row < s->KH; row++) {
        const int h = oh * s->strides_0 - s->pads_0 + row * s->dilations_0;
        for (int col = 0; col < s->KW; col++, taps->count++) {
            const int w = ow * s->strides_1 - s->pads_1 + col * s->dilations_1;
            const int inside = h >= 0 && h < s->IH && w >= 0 && w < s->IW;
            taps->x[taps->count] = inside ? (const char *)x + ((ptrdiff_t)h * s->IW + w) * s->x_col : outside;
            taps->moves[taps->count] = -(ptrdiff_t)inside;
        }
    }
}

/* Bytes, one pixel: out[count] = bias + sum over the listed taps for at most 16 channels. */
#define TW_DEFINE_DEPTHWISE(NAME, TYPE)                                                                                \
    TW_INLINE void NAME##_tile(const int WIDTH, const struct tw_tap_list *taps, ptrdiff_t offset, const int8_t *w,     \
                               const int32_t *bias, int32_t *out) {                                                    \
        int32_t acc[16];                                                                                               \
        TW_UNROLL for (int j = 0; j < WIDTH; j++) acc[j] = bias[j];                                                    \
        for (int tap = 0; tap < taps->count; tap++, w += 16) {                                                         \
            const TYPE *x = (const TYPE *)taps->x[tap] + (offset & taps->moves[tap]);                                  \
            TW_UNROLL for (int j = 0; j < WIDTH; j++) acc[j] += x[j] * w[j];                                           \
        }                                                                                                              \
        TW_UNROLL for (int j = 0; j < WIDTH; j++) out[j] = acc[j];                                                     \
    }                                                                                                                  \
    TW_APART void NAME(int count, const struct tw_tap_list *taps, ptrdiff_t offset, const int8_t *w,                   \
                       const int32_t *bias, int32_t *out) {                                                            \
        if (count == 16) {                                                                                             \
            NAME##_tile(16, taps, offset, w, bias, out);                                                               \
        } else if (count == 8) {                                                                                       \
            NAME##_tile(8, taps, offset, w, bias, out);                                                                \
        } else {                                                                                                       \
            for (int j = 0; j < count; j++)                                                                            \
                NAME##_tile(1, taps, offset + j, w + j, bias + j, out + j);                                            \
        }                                                                                                              \
    }
TW_DEFINE_DEPTHWISE(tw_depthwise_s8, int8_t)
TW_DEFINE_DEPTHWISE(tw_depthwise_u8, uint8_t)

/* Sums of a rectangle of taps for at most 16 channels. */
#define TW_DEFINE_WINDOW_SUM(NAME, TYPE, SUM)                                                                          \
    TW_APART void NAME(int count, const TYPE *x, ptrdiff_t x_row, ptrdiff_t x_col, int rows, int cols, SUM *out) {     \
        SUM acc[16];                                                                                                   \
        TW_UNROLL for (int j = 0; j < 16; j++) acc[j] = 0;                                                             \
        for (int row = 0; row < rows; row++) {                                                                         \
            for (int col = 0; col < cols; col++) {                                                                     \
                const TYPE *tap = x + row * x_row + col * x_col;                                                       \
                if (count == 16) {                                                                                     \
                    TW_UNROLL for (int j = 0; j < 16; j++) acc[j] += tap[j];                                           \
                } else {                                                                                               \
                    TW_UNROLL for (int j = 0; j < 16; j++) acc[j] += j < count ? tap[j] : 0;                           \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        TW_UNROLL for (int j = 0; j < 16; j++) out[j] = acc[j];                                                        \
    }
TW_DEFINE_WINDOW_SUM(tw_window_sum_f32, float, float)
TW_DEFINE_WINDOW_SUM(tw_window_sum_s8, int8_t, int32_t)
TW_DEFINE_WINDOW_SUM(tw_window_sum_u8, uint8_t, int32_t)

#define TW_FOR_BYTES(x, NAME) _Generic((x), const int8_t *: NAME##_s8, const uint8_t *: NAME##_u8)

#endif
