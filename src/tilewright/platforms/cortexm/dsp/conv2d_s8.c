/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1"}
pack: {W: "G,F,C,KH,KW -> G,F/2,(KH,KW,C)/4,F%2,(KH,KW,C)%4"}
epilogue: row
scratch: "24*((KH*KW*C+3)//4) + max(C, min(C%4, 1)*12*((KH*KW*C+3)//4))"
cycles:
  words_of_three_pixels: G * twos(F) * (whole_threes(P := N*OH*OW) + several(left_of_threes(P))) * words(KH*KW*C)
  words_of_one_pixel: G * twos(F) * one(left_of_threes(P)) * words(KH*KW*C)
  blocks: G * sixteens(F) * threes(P)
  # Pixels that follow each other, of whole words, are widened from where they are.
  gathers: G * threes(P) * unless(one(KH*KW*strides_0*strides_1) * unless(ragged_fours(C)) * none(X_o1 + X_o2))
  gathered: G * P * (words(KH*KW*C) + ragged_fours(C) * (KH * words(KW*C) + several(dilations_0*dilations_1) * KH*KW*C))
  runs: G * P * KH * several(KH*KW*strides_0*strides_1)
  results: P * G*F
  behind: P * G*F * FUSED
--- */
#include "tilewright_smlad.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Where nothing is left out of the taps of a pixel. */
TW_INLINE int conv2d_s8_inside(const struct tw_patch *s, int ih, int iw) {
    return ih >= 0 && ih + (s->KH - 1) * s->dilations_0 < s->IH && iw >= 0 && iw + (s->KW - 1) * s->dilations_1 < s->IW;
}

/* Taps of one or three pixels whose channels are whole words: widened from where they lie. */
static void conv2d_s8_words(const struct tw_patch *s, int pixels, const T *const *x, const int *ih, const int *iw,
                            const T *outside, uint32_t *to) {
    const void *from[3];
    int inside = 1;
    for (int i = 0; i < pixels; i++)
        inside &= conv2d_s8_inside(s, ih[i], iw[i]);
    /* Neighbouring taps are one run then. */
    const int joined = inside && s->dilations_1 == 1 && s->x_col == s->C;
    const int runs = joined ? 1 : s->KW, quads = (joined ? s->KW : 1) * s->C / 4;
    for (int row = 0; row < s->KH; row++) {
        for (int col = 0; col < runs; col++) {
            for (int i = 0; i < pixels; i++) {
                const int h = ih[i] + row * s->dilations_0, w = iw[i] + col * s->dilations_1;
                const int valid = inside || (h >= 0 && h < s->IH && w >= 0 && w < s->IW);
                from[i] = valid ? x[i] + ((ptrdiff_t)h * s->IW + w) * s->x_col : outside;
            }
            to = tw_widen(outside, pixels, to, quads, from);
        }
    }
}

/* Copies runs of bytes word by word; the last word overlaps the one before. */
static void conv2d_s8_runs(T *to, ptrdiff_t to_row, const T *from, ptrdiff_t from_row, int rows, int bytes) {
    for (; rows > 0; rows--, to += to_row, from += from_row) {
        int i = 0;
        for (; i < bytes - 4; i += 4)
            tw_store_word(to + i, tw_load_word(from + i));
        if (bytes >= 4) {
            tw_store_word(to + bytes - 4, tw_load_word(from + bytes - 4));
        } else {
            for (; i < bytes; i++)
                to[i] = from[i];
        }
    }
}

/* Taps of one or three pixels byte by byte: side by side first, then widened. */
static void conv2d_s8_bytes(const struct tw_patch *s, int pixels, const T *const *x, const int *ih, const int *iw,
                            T *patch, int quads, uint32_t *to) {
    const int width = s->KW * s->C, pitch = s->IW * s->C;
    const void *const from[3] = {patch, patch + quads * 4, patch + quads * 8};
    for (int i = 0; i < pixels; i++, patch += quads * 4) {
        if (s->dilations_0 != 1 || s->dilations_1 != 1 || s->x_col != s->C) {
            tw_gather(s, x[i], (ih[i] + s->pads_0) / s->strides_0, (iw[i] + s->pads_1) / s->strides_1, patch);
        } else if (conv2d_s8_inside(s, ih[i], iw[i])) {
            conv2d_s8_runs(patch, width, x[i] + ih[i] * pitch + iw[i] * s->C, pitch, s->KH, width);
        } else {
            const uint32_t outside = (uint32_t)(uint8_t)s->x_zero_point * 0x01010101u;
            const int top = tw_max(-ih[i], 0), left = tw_max(-iw[i], 0);
            const int rows = tw_min(s->KH, s->IH - ih[i]) - top, run = (tw_min(s->KW, s->IW - iw[i]) - left) * s->C;
            for (int k = 0; k < quads; k++)
                tw_store_word(patch + k * 4, outside);
            conv2d_s8_runs(patch + top * width + left * s->C, width,
                           x[i] + (ih[i] + top) * pitch + (iw[i] + left) * s->C, pitch, rows, run);
        }
    }
    (void)tw_widen((const T *)patch, pixels, to, quads, from);
}

static void conv2d_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int F, int OH, int OW,
                      int C, int KH, int KW, int X_n1, int X_n2, int strides_0, int strides_1, int pads_0, int pads_1,
                      int dilations_0, int dilations_1, int x_zero_point, void *scratch,
                      const struct Epilogue *epilogue) {
    const struct tw_patch shape = TW_PATCH(C, (ptrdiff_t)G * C);
    const int quads = (KH * KW * C + 3) / 4, pixels = N * OH * OW, words = C % 4 == 0;
    const int pointwise = words && KH * KW == 1 && strides_0 * strides_1 == 1 && X_n1 == OH && X_n2 == OW;
    uint32_t *const wide = scratch;
    T *const bytes = (T *)(void *)(wide + quads * 6); /* what lies outside the image, or patches byte by byte */
    int32_t panel[16], out[3 * 16];
    for (int i = 0; i < (words ? C : quads * 12); i++)
        bytes[i] = (T)x_zero_point;
    for (int g = 0; g < G; g++) {
        for (int pixel = 0, n = 0, oh = 0, ow = 0, some; pixel < pixels; pixel += some) {
            some = tw_min(3, pixels - pixel);
            const int many = some == 1 ? 1 : 3; /* where two are left, the last one is done twice */
            if (pointwise) {
                const T *x = X + (ptrdiff_t)pixel * shape.x_col + (ptrdiff_t)g * C;
                const void *const from[3] = {x, x + (many - 1) / 2 * shape.x_col, x + (some - 1) * shape.x_col};
                (void)tw_widen(x, many, wide, quads, from);
            } else {
                const T *x[3];
                int ih[3], iw[3];
                for (int i = 0; i < many; i++) {
                    x[i] = X + (ptrdiff_t)n * X_n1 * X_n2 * shape.x_col + (ptrdiff_t)g * C;
                    ih[i] = oh * strides_0 - pads_0;
                    iw[i] = ow * strides_1 - pads_1;
                    if ((i < some - 1 || i == 2) && ++ow == OW) {
                        ow = 0;
                        if (++oh == OH) {
                            oh = 0;
                            n++;
                        }
                    }
                }
                if (words)
                    conv2d_s8_words(&shape, many, x, ih, iw, bytes, wide);
                else
                    conv2d_s8_bytes(&shape, many, x, ih, iw, bytes, quads, wide);
            }
            for (int f = 0; f < F; f += 16) {
                const int count = tw_min(16, F - f);
                const int8_t *w = W + ((ptrdiff_t)g * ((F + 1) / 2 * 2) + f) * quads * 4;
                tw_smlad_block(many, wide, w, quads, count, tw_smlad_bias(B, g * F + f, count, panel), out);
                STORE(epilogue, Y, out, (ptrdiff_t)pixel * G * F + g * F + f, (ptrdiff_t)G * F, g * F + f, some, count);
            }
        }
    }
}
