/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1"}
pack: {W: "G,F,C,KH,KW -> G,F/8,KW,KH,C,F%8"}
epilogue: lanes
strided: [X, Y]
scratch: "32*((F+7)//8)*(1 + 2*max(1, min(8, 32//((F+7)//8)))) + (1-(KH*KW==1)*(pads_0==0)*(pads_1==0)*(pads_2==0)*(pads_3==0))
  *4*KH*C*((((OW-1)*strides_1 + (KW-1)*dilations_1)//dilations_1+1)*dilations_1)"
cycles:
  products_of_two: G * eights(F) * N * (PAIRS := (FLAT := (DIRECT := one(KH*KW) * none(X_o1 + X_o2)) * one(strides_0*strides_1)) * whole_twos(OH*OW)
    + unless(FLAT) * OH*whole_twos(OW)) * KH*KW*C
  products_of_one: G * eights(F) * N * (SINGLE := FLAT * left_of_twos(OH*OW) + unless(FLAT) * OH*left_of_twos(OW)) * KH*KW*C
  blocks: G * eights(F) * N * (PAIRS + SINGLE)
  lines: unless(DIRECT) * G * N*OH * KH
  columns: unless(DIRECT) * G * N*OH * KH * (OW*strides_1 + KW) * fours(C)
  pixels: N*OH*OW * G
  single: N*OH*OW * G * left_of_fours(F)
  behind: N*OH*OW * G*F * FUSED
--- */
#include "tilewright_mve.h"

/* The sums of neighbouring pixels. Where channels are all the same and nothing is between pixels, these are one row. */
TW_INLINE void finish(const struct Epilogue *epilogue, void *Y, const float *sums, int pixels, int at, int pitch,
                      int channel, int count) {
    const struct Epilogue e = *epilogue;
    const int behind = -count & 7;
    if (!STORE_BY_CHANNEL && pitch == count && behind == 0) {
        count *= pixels;
        pixels = 1;
    }
    for (; pixels > 0; pixels--, at += pitch) {
        int f = 0;
#if STORE_HAS_LANES
        for (; f + 4 <= count; f += 4, sums += 4)
            STORE_LANES(&e, Y, vldrwq_f32(sums), at + f, channel + f);
#endif
        for (; f < count; f += 4, sums += 4)
            STORE(&e, Y, sums, at + f, 0, channel + f, 1, tw_min(4, count - f));
        sums += behind & 4;
    }
}

/* Two pixels by eight filters. Pixels are read where they are, if their taps lie side by side; otherwise the lines that a
 * line of results sees are turned first. */
static void conv2d_f32(const float *X, const float *W, const float *B, void *Y, int N, int G, int F, int OH, int OW,
                       int C, int KH, int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1,
                       int Y_s2, int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0, int dilations_1,
                       void *scratch, const struct Epilogue *epilogue) {
    const int taps = KH * KW * C;
    const int right = (OW - 1) * strides_1 - pads_1, below = (OH - 1) * strides_0 - pads_0;
    const int direct = KH * KW == 1 && pads_0 <= 0 && pads_1 <= 0 && right < X_n2 && below < X_n1;
    if (direct && strides_0 * strides_1 == 1 && X_s1 == OW * X_s2 && Y_s1 == OW * Y_s2) { /* one long line */
        OW *= OH;
        OH = 1;
    }
    const int width = (((OW - 1) * strides_1 + (KW - 1) * dilations_1) / dilations_1 + 1) * dilations_1;
    const struct tw_strip shape = {.C = 4 * C, /* in bytes */
                                   .KH = KH,
                                   .IH = X_n1,
                                   .IW = X_n2,
                                   .x_row = 4 * X_s1,
                                   .x_col = 4 * X_s2,
                                   .width = width,
                                   .dilation_0 = dilations_0,
                                   .dilation_1 = dilations_1};
    const struct tw_places places = {.step = direct             ? strides_1 * X_s2
                                             : dilations_1 == 1 ? strides_1 * KH * C
                                                                : KH * C,
                                     .stride = strides_1,
                                     .dilation = direct ? 1 : dilations_1,
                                     .each = width / dilations_1};
    const int eights = (F + 7) / 8, pairs = tw_max(1, tw_min(8, 32 / eights)),
              most = places.dilation > 1 ? 2 : 2 * pairs;
    float *const first = scratch, *const sums = first + eights * 8, *const strip = sums + eights * 8 * 2 * pairs;
    for (int g = 0; g < G; g++, W += eights * 8 * taps) {
        struct tw_real_dots dots = tw_real_dots_of(taps, F, W, first);
        tw_real_first(first, B ? B + g * F : B, F);
        for (int line = 0; line < N * OH; line++) {
            const int n = line / OH, oh = line - n * OH, ih = oh * strides_0 - pads_0;
            const float *x = X + g * C + n * X_s0;
            if (direct) {
                x += ih * X_s1 - pads_1 * X_s2;
            } else {
                tw_strip_fill(&shape, x, ih, -pads_1, strip);
                x = strip;
            }
            for (int ow = 0, done; ow < OW; ow += done) {
                done = tw_min(most, OW - ow);
                dots.a0 = x + tw_place(&places, ow);
                dots.a1 = x + tw_place(&places, ow + 1);
                dots.sums = sums;
                dots.step = 8 * places.step;
                dots.pairs = done / 2;
                if (done > 1)
                    tw_real_pairs(&dots);
                if (done % 2) {
                    dots.a0 = x + tw_place(&places, ow + done - 1);
                    dots.sums = sums + (done - 1) * eights * 8;
                    dots.pairs = 1;
                    tw_real_singles(&dots);
                }
                finish(epilogue, Y, sums, done, n * Y_s0 + oh * Y_s1 + g * F + ow * Y_s2, Y_s2, g * F, F);
            }
        }
    }
}
