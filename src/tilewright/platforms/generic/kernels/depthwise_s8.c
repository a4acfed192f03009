/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", C: "== 1", F: "== 1", KH: "<= 8", KW: "<= 8"}
pack: {W: "G,F,C,KH,KW -> G/16,F,C,KH,KW,G%16"}
epilogue: row
cycles: "N*G*OH*OW*(2+KH*KW/4)"
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* The taps of one output pixel and of those that follow in the interior of a line. */
struct depthwise_s8_taps {
    const T *x[64];
    ptrdiff_t moves[64]; /* a mask for the offset: zero for a tap outside the image, else all ones */
    int count;
};

/* out[WIDTH] = bias + sum over the taps; WIDTH is a constant. */
TW_INLINE void depthwise_s8_tile(const int WIDTH, const struct depthwise_s8_taps *taps, ptrdiff_t offset,
                                 const int8_t *w, const int32_t *bias, int32_t *out) {
    int32_t acc[16];
    TW_UNROLL for (int j = 0; j < WIDTH; j++) acc[j] = bias[j];
    for (int tap = 0; tap < taps->count; tap++, w += 16) {
        const T *x = taps->x[tap] + (offset & taps->moves[tap]);
        TW_UNROLL for (int j = 0; j < WIDTH; j++) acc[j] += x[j] * w[j];
    }
    TW_UNROLL for (int j = 0; j < WIDTH; j++) out[j] = acc[j];
}

TW_APART void depthwise_s8_block(int count, const struct depthwise_s8_taps *taps, ptrdiff_t offset, const int8_t *w,
                                 const int32_t *bias, int32_t *out) {
    if (count == 16) {
        depthwise_s8_tile(16, taps, offset, w, bias, out);
    } else if (count == 8) {
        depthwise_s8_tile(8, taps, offset, w, bias, out);
    } else {
        for (int j = 0; j < count; j++)
            depthwise_s8_tile(1, taps, offset + j, w + j, bias + j, out + j);
    }
}

struct depthwise_s8_image {
    int IH, IW, G, KH, KW, dilations_0, dilations_1;
};

/* Lists the taps of the pixel whose first tap is at (ih, iw). */
static void depthwise_s8_list(struct depthwise_s8_taps *taps, const struct depthwise_s8_image *image, const T *x,
                              int ih, int iw, const T *outside) {
    taps->count = 0;
    for (int row = 0; row < image->KH; row++) {
        const int h = ih + row * image->dilations_0;
        for (int col = 0; col < image->KW; col++, taps->count++) {
            const int w = iw + col * image->dilations_1;
            const int inside = h >= 0 && h < image->IH && w >= 0 && w < image->IW;
            taps->x[taps->count] = inside ? x + ((ptrdiff_t)h * image->IW + w) * image->G : outside;
            taps->moves[taps->count] = -(ptrdiff_t)inside;
        }
    }
}

static void depthwise_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int OH, int OW, int KH,
                         int KW, int X_n1, int X_n2, int strides_0, int strides_1, int pads_0, int pads_1,
                         int dilations_0, int dilations_1, int x_zero_point, const struct Epilogue *epilogue) {
    T outside[16];
    int32_t panel[16], out[16];
    ptrdiff_t offset = 0;
    struct depthwise_s8_taps taps;
    const struct depthwise_s8_image image = {X_n1, X_n2, G, KH, KW, dilations_0, dilations_1};
    const struct tw_span interior = tw_interior(OW, X_n2, KW, strides_1, dilations_1, pads_1);
    memset(outside, x_zero_point, sizeof outside);
    for (int line = 0; line < N * OH; line++) {
        const int n = line / OH, ih = line % OH * strides_0 - pads_0;
        for (int ow = 0; ow < OW; ow++) {
            const int iw = ow * strides_1 - pads_1;
            if (ow > interior.begin && ow < interior.end) {
                offset += (ptrdiff_t)strides_1 * G;
            } else {
                offset = 0;
                depthwise_s8_list(&taps, &image, X + (ptrdiff_t)n * X_n1 * X_n2 * G, ih, iw, outside);
            }
            for (int g = 0; g < G; g += 16) {
                const int count = tw_min(16, G - g);
                const int32_t *bias = tw_bias_s32(B, g, count, panel);
                depthwise_s8_block(count, &taps, offset + g, W + (ptrdiff_t)g * KH * KW, bias, out);
                STORE_PANEL(epilogue, Y, out, ((ptrdiff_t)line * OW + ow) * G + g, g, count);
            }
        }
    }
}
