/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1", C: "== 1", F: "== 1"}
pack: {W: "G,F,C,KH,KW -> G/16,F,C,KH,KW,G%16"}
epilogue: row
cycles: "N*G*OH*OW*(4+KH*KW/4)"
--- */
#include "tilewright_kernel.h"

/* The taps of neighbouring pixels inside the image: distances in X and the part of the kernel that is used. */
struct depthwise_f32_taps {
    ptrdiff_t x_pixel, x_row, x_col;
    struct tw_span kh, kw;
    int KW;
};

/* out[PIXELS][WIDTH] = bias + sum over the taps; PIXELS and WIDTH are constants. */
TW_INLINE void depthwise_f32_tile(const int PIXELS, const int WIDTH, const struct depthwise_f32_taps t, const float *x,
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

/* One to four pixels of 16, 8 or fewer channels. */
TW_APART void depthwise_f32_block(int pixels, int channels, const struct depthwise_f32_taps t, const float *x,
                                  const float *w, const float *bias, float *out) {
    if (channels == 16 && pixels == 4) {
        depthwise_f32_tile(4, 16, t, x, w, bias, out);
    } else if (channels == 16) {
        depthwise_f32_tile(1, 16, t, x, w, bias, out);
    } else if (channels == 8 && pixels == 4) {
        depthwise_f32_tile(4, 8, t, x, w, bias, out);
    } else if (channels == 8) {
        depthwise_f32_tile(1, 8, t, x, w, bias, out);
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

static void depthwise_f32(const float *X, const float *W, const float *B, void *Y, int N, int G, int OH, int OW, int KH,
                          int KW, int X_n1, int X_n2, int strides_0, int strides_1, int pads_0, int pads_1,
                          int dilations_0, int dilations_1, const struct Epilogue *epilogue) {
    struct depthwise_f32_taps taps = {.x_pixel = (ptrdiff_t)G * strides_1,
                                      .x_row = (ptrdiff_t)G * X_n2 * dilations_0,
                                      .x_col = (ptrdiff_t)G * dilations_1,
                                      .KW = KW};
    const struct tw_span interior = tw_interior(OW, X_n2, KW, strides_1, dilations_1, pads_1);
    float panel[16], out[4 * 16];
    for (int line = 0; line < N * OH; line++) {
        const int n = line / OH, ih = line % OH * strides_0 - pads_0;
        const float *x_line = X + ((ptrdiff_t)n * X_n1 + ih) * X_n2 * G;
        taps.kh = tw_inside(ih, X_n1, KH, dilations_0);
        for (int g = 0; g < G; g += 16) {
            const int count = tw_min(16, G - g);
            const float *w = W + (ptrdiff_t)g * KH * KW;
            const float *bias = tw_bias_f32(B, g, count, panel);
            for (int ow = 0; ow < OW;) {
                const int pixels = ow >= interior.begin && ow + 4 <= interior.end ? 4 : 1;
                const int iw = ow * strides_1 - pads_1;
                taps.kw = tw_inside(iw, X_n2, KW, dilations_1);
                depthwise_f32_block(pixels, count, taps, x_line + (ptrdiff_t)iw * G + g, w, bias, out);
                for (int i = 0; i < pixels; i++, ow++) {
                    const ptrdiff_t at = ((ptrdiff_t)line * OW + ow) * G + g;
                    STORE_PANEL(epilogue, Y, out + i * 16, at, g, count);
                }
            }
        }
    }
}
