/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", C: "> 1"}
pack: {W: "G,F,C,KH,KW -> G,F/8,KH,KW,C/4,F%8,C%4"}
epilogue: row
strided: [X, Y]
accumulate: [C]
scratch: "8*((((OH-1)*strides_0+(KH-1)*dilations_0+1)*((OW-1)*strides_1+(KW-1)*dilations_1+1)*G+KH*KW*8)*((C+3)//4)+((OW-1)*strides_1+(KW-1)*dilations_1+1)*G*((C+3)//4))"
# Bytes become numbers of 16 bits: an image with its edges once, eight channels of the filter before they are multiplied.
cycles:
  quads: (BLOCKS := N * OH * OW * G * eights(F)) * KH * KW * fours(C)
  weights: N * G * eights(F) * KH * KW * fours(C)
  lines: (LINES := N * (OH * strides_0 + KH * dilations_0))
  inputs: (PIXELS := LINES * (OW * strides_1 + KW * dilations_1) * G) * fours(C)
  copied: ragged_fours(C) * PIXELS * C
  blocks: BLOCKS
  behind: N * OH * OW * G * F * FUSED
  call: 1
--- */
#include "tilewright_halves.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Pixels of a row, each of `groups` times C bytes, as words of four. */
TW_INLINE void conv2d_halves_s8_words(const T *x, int pixels, int step, int groups, int C, uint32_t *words) {
    const int quads = (C + 3) / 4;
    for (int pixel = 0; pixel < pixels; pixel++, x += step)
        for (int g = 0; g < groups; g++, words += quads) {
            words[quads - 1] = 0;
            for (int c = 0; c < C; c++)
                ((T *)(void *)words)[c] = x[g * C + c];
        }
}

static void conv2d_halves_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int F, int OH,
                             int OW, int C, int KH, int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0,
                             int Y_s1, int Y_s2, int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0,
                             int dilations_1, int x_zero_point, void *scratch, const struct Epilogue *epilogue) {
    const int quads = (C + 3) / 4, pixel_quads = G * quads, is_signed = (T)-1 < 0;
    const int height = (OH - 1) * strides_0 + (KH - 1) * dilations_0 + 1;
    const int width = (OW - 1) * strides_1 + (KW - 1) * dilations_1 + 1, row_quads = width * pixel_quads;
    const int first = tw_max(0, pads_1), last = tw_min(width, X_n2 + pads_1);
    const int whole = C % 4 == 0 && X_s2 == G * C && ((uintptr_t)X | (uintptr_t)X_s1 | (uintptr_t)X_s0) % 4 == 0;
    /* Rows of the filter whose sums are exact, or, where one has more products, those of a tap. */
    const int exact = is_signed ? TW_QUADS_OF_SIGNED : TW_QUADS_OF_UNSIGNED, most = exact / (KW * quads);
    const int column = dilations_1 * pixel_quads * 8, inner = (quads - 1) * 8;
    uint64_t *const image = scratch, *const filter = image + height * row_quads;
    uint32_t *const words = (uint32_t *)(void *)(filter + KH * KW * 8 * quads);
    for (int n = 0; n < N; n++) {
        const uint32_t zeros = (uint32_t)(x_zero_point & 255) * 0x01010101u;
        for (int ph = 0; ph < height; ph++) {
            const int ih = ph - pads_0, inside = ih >= 0 && ih < X_n1 && last > first;
            uint64_t *const row = image + ph * row_quads;
            const T *const x = X + n * X_s0 + ih * X_s1 + (first - pads_1) * X_s2;
            const int begin = inside ? first : width, end = inside ? last : width;
            for (int i = 0; i < begin * pixel_quads; i++)
                words[i] = zeros;
            for (int i = end * pixel_quads; i < row_quads; i++)
                words[i] = zeros;
            if (inside && !whole)
                conv2d_halves_s8_words(x, end - begin, X_s2, G, C, words + begin * pixel_quads);
            if (inside && whole) {
                tw_halves(words, begin * pixel_quads, is_signed, row);
                tw_halves((const uint32_t *)(const void *)x, (end - begin) * pixel_quads, is_signed,
                          row + begin * pixel_quads);
                tw_halves(words + end * pixel_quads, (width - end) * pixel_quads, is_signed, row + end * pixel_quads);
            } else {
                tw_halves(words, row_quads, is_signed, row);
            }
        }
        for (int g = 0; g < G; g++)
            for (int f = 0; f < F; f += 8) {
                const int count = tw_min(8, F - f), channel = g * F + f;
                const int8_t *const w = W + (g * ((F + 7) / 8) + f / 8) * KH * KW * quads * 32;
                tw_halves((const uint32_t *)(const void *)w, KH * KW * quads * 8, 1, filter);
                TW_STREAM_TIMES(0, 8);
                TW_STREAM_TIMES(1, 1);
                TW_STREAM_LOOP(0, 0, quads, 8);
                TW_STREAM_LOOP(0, 1, KW, column - inner);
                for (int oh = 0; oh < OH; oh++)
                    for (int ow = 0; ow < OW; ow++) {
                        int32_t out[16];
                        tw_halves_begin(B, channel, count, out);
                        const uint64_t *const x =
                            image + oh * strides_0 * row_quads + ow * strides_1 * pixel_quads + g * quads;
                        for (int kh = 0; most && kh < KH; kh += most) {
                            const int rows = tw_min(most, KH - kh), taps = rows * KW * quads;
                            TW_STREAM_LOOP(0, 2, rows, dilations_0 * row_quads * 8 - (KW - 1) * column - inner);
                            TW_STREAM_LOOP(1, 0, taps * 8, 8);
                            TW_STREAM_READ(0, 3, x + kh * dilations_0 * row_quads);
                            TW_STREAM_READ(1, 1, filter + kh * KW * quads * 8);
                            tw_halves_dots(taps, out);
                        }
                        for (int tap = 0; !most && tap < KH * KW; tap++)
                            for (int q = 0; q < quads; q += exact) {
                                const int part = tw_min(exact, quads - q), kh = tap / KW, kw = tap % KW;
                                TW_STREAM_LOOP(0, 0, part, 8);
                                TW_STREAM_LOOP(1, 0, part * 8, 8);
                                TW_STREAM_READ(0, 1,
                                               x + kh * dilations_0 * row_quads + kw * dilations_1 * pixel_quads + q);
                                TW_STREAM_READ(1, 1, filter + (tap * quads + q) * 8);
                                tw_halves_dots(part, out);
                            }
                        STORE(epilogue, Y, out, n * Y_s0 + oh * Y_s1 + ow * Y_s2 + channel, 0, channel, 1, count);
                    }
            }
    }
}
