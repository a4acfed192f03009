/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", C: "== 1", F: "== 1", KH: "<= 8", KW: "<= 8"}
pack: {W: "G,F,C,KH,KW -> G/4,F,C,KH,KW,G%4"}
epilogue: row
cycles:
  taps: (P := N*OH*OW) * whole_fours(G) * KH*KW
  single_taps: P * left_of_fours(G) * KH*KW
  blocks: P * sixteens(G)
  listed_taps: N*OH * KH*KW * (min(OW, steps(X_o2, strides_1)) + some(OW))
  pixels: P
  results: P * G
  plain: P * G * none(STEPS) # words are copied one by one
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

#define EVEN(word) ((T)(-1) < 0 ? tw_even_s8(word) : tw_even_u8(word))
#define ODD(word) ((T)(-1) < 0 ? tw_odd_s8(word) : tw_odd_u8(word))

/* Four channels of one or two pixels, which are `step` apart. */
TW_INLINE void depthwise_s8_four(const int PIXELS, const struct tw_tap_list *taps, ptrdiff_t offset, ptrdiff_t step,
                                 const int8_t *w, const int32_t *bias, int32_t *out) {
    int32_t sum[2][4];
    TW_UNROLL for (int i = 0; i < PIXELS; i++) { TW_UNROLL for (int j = 0; j < 4; j++) sum[i][j] = bias[j]; }
    for (int tap = 0; tap < taps->count; tap++, w += 4) {
        const char *x = taps->x[tap] + (offset & taps->moves[tap]);
        const ptrdiff_t next = step & taps->moves[tap];
        const uint32_t weights = tw_load_word(w), even = tw_even_s8(weights), odd = tw_odd_s8(weights);
        TW_UNROLL for (int i = 0; i < PIXELS; i++) {
            const uint32_t word = tw_load_word(x + i * next), a = EVEN(word), b = ODD(word);
            sum[i][0] = tw_low_product(a, even, sum[i][0]);
            sum[i][2] = tw_high_product(a, even, sum[i][2]);
            sum[i][1] = tw_low_product(b, odd, sum[i][1]);
            sum[i][3] = tw_high_product(b, odd, sum[i][3]);
        }
    }
    TW_UNROLL for (int i = 0; i < PIXELS; i++) { TW_UNROLL for (int j = 0; j < 4; j++) out[i * 16 + j] = sum[i][j]; }
}

/* Up to 16 channels of one or two pixels. */
TW_APART void depthwise_s8_some(int pixels, int count, const struct tw_tap_list *taps, ptrdiff_t offset, ptrdiff_t step,
                                const int8_t *w, const int32_t *bias, int32_t *out) {
    int j = 0;
    for (; j + 4 <= count; j += 4, w += taps->count * 4) {
        if (pixels == 2)
            depthwise_s8_four(2, taps, offset + j, step, w, bias + j, out + j);
        else
            depthwise_s8_four(1, taps, offset + j, step, w, bias + j, out + j);
    }
    for (int i = 0; i < pixels; i++) {
        for (int k = j; k < count; k++) {
            int32_t sum = bias[k];
            for (int tap = 0; tap < taps->count; tap++)
                sum += ((const T *)taps->x[tap])[(offset + i * step + k) & taps->moves[tap]] * w[tap * 4 + k - j];
            out[i * 16 + k] = sum;
        }
    }
}

static void depthwise_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int OH, int OW, int KH,
                         int KW, int X_n1, int X_n2, int strides_0, int strides_1, int pads_0, int pads_1,
                         int dilations_0, int dilations_1, int x_zero_point, const struct Epilogue *epilogue) {
    T outside[16];
    int32_t panel[16], out[2 * 16];
    struct tw_tap_list taps;
    const struct tw_patch image = TW_PATCH(1, G);
    const struct tw_span interior = tw_interior(OW, X_n2, KW, strides_1, dilations_1, pads_1);
    const ptrdiff_t step = (ptrdiff_t)strides_1 * G;
    for (int j = 0; j < 16; j++)
        outside[j] = (T)x_zero_point;
    for (int line = 0; line < N * OH; line++) {
        ptrdiff_t offset = 0;
        for (int ow = 0, pixels; ow < OW; ow += pixels, offset += pixels * step) {
            const int inside = ow >= interior.begin && ow < interior.end;
            pixels = inside && interior.end - ow >= 2 ? 2 : 1;
            /* Pixels inside follow each other; the taps of the others are listed one by one. */
            if (!inside || ow == interior.begin) {
                offset = 0;
                tw_list_taps(&taps, &image, X + (ptrdiff_t)(line / OH) * X_n1 * X_n2 * G, line % OH, ow, outside);
            }
            for (int g = 0; g < G; g += 16) {
                const int count = tw_min(16, G - g);
                depthwise_s8_some(pixels, count, &taps, offset + g, step, W + (ptrdiff_t)g * KH * KW,
                                  tw_bias_s32(B, g, count, panel), out);
                STORE(epilogue, Y, out, ((ptrdiff_t)line * OW + ow) * G + g, G, g, pixels, count);
            }
        }
    }
}
#undef EVEN
#undef ODD
