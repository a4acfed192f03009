/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1"}
pack: {W: "G,F,C,KH,KW -> G,F/4,(KW,KH,C)/16,F%4,(KW,KH,C)%16"}
epilogue: lanes
strided: [X, Y]
scratch: "32*((F+3)//4)*(1 + max(1, min(8, 64//((F+3)//4)))) + (1-(KH*KW==1)*(pads_0==0)*(pads_1==0)*(pads_2==0)*(pads_3==0))
  *KH*C*((((OW-1)*strides_1 + (KW-1)*dilations_1)//dilations_1+1)*dilations_1)"
cycles:
  vectors: G * fours(F) * N * (PAIRS := (FLAT := (DIRECT := one(KH*KW) * none(X_o1 + X_o2)) * one(strides_0*strides_1)) * twos(OH*OW)
    + unless(FLAT) * OH*twos(OW)) * sixteens(KH*KW*C)
  blocks: G * fours(F) * N * PAIRS
  lines: G * N * (FLAT + unless(FLAT) * OH * (some(OH) + unless(DIRECT) * KH))
  # Vectors that turn lines: several short runs of channels are in one.
  columns: unless(DIRECT) * G * N*OH * KH * ((SHORT := (C <= 8) * 1) * sixteens((WIDTH := OW*strides_1 + KW)*C) + unless(SHORT) * WIDTH * sixteens(C))
  first_sums: G * fours(F) * (unless(X_signed) * sixteens(KH*KW*C) + some(F))
  pixels: N*OH*OW * G
  single: N*OH*OW * G * left_of_fours(F)
  behind: N*OH*OW * G*F * FUSED
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* The sums of neighbouring pixels. Where channels are all the same and nothing is between pixels, these are one row. */
TW_INLINE void finish(const struct Epilogue *epilogue, void *Y, const int32_t *sums, int pixels, int at, int pitch,
                      int channel, int count) {
    const struct Epilogue e = *epilogue;
    if (!STORE_BY_CHANNEL && pitch == count && count % 4 == 0) {
        count *= pixels;
        pixels = 1;
    }
    for (; pixels > 0; pixels--, at += pitch) {
        int f = 0;
#if STORE_HAS_LANES
        for (; f + 4 <= count; f += 4, sums += 4)
            STORE_LANES(&e, Y, vldrwq_s32(sums), at + f, channel + f);
#endif
        for (; f + 4 <= count; f += 4, sums += 4)
            STORE_4(&e, Y, sums[0], sums[1], sums[2], sums[3], at + f, channel + f);
        for (int i = 0; f + i < count; i++)
            STORE_1(&e, Y, sums[i], at + f + i, channel + f + i);
        sums += f < count ? 4 : 0;
    }
}

/* Two pixels by four filters. Pixels are read where they are, if their taps lie side by side; otherwise the lines that a
 * line of results sees are turned first. */
static void conv2d_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int F, int OH, int OW,
                      int C, int KH, int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1,
                      int Y_s2, int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0, int dilations_1,
                      int x_zero_point, void *scratch, const struct Epilogue *epilogue) {
    const int taps = KH * KW * C, flip = (T)-1 > 0;
    const int right = (OW - 1) * strides_1 - pads_1, below = (OH - 1) * strides_0 - pads_0;
    const int direct = KH * KW == 1 && pads_0 <= 0 && pads_1 <= 0 && right < X_n2 && below < X_n1;
    if (direct && strides_0 * strides_1 == 1 && X_s1 == OW * X_s2 && Y_s1 == OW * Y_s2) { /* one long line */
        OW *= OH;
        OH = 1;
    }
    const int width = (((OW - 1) * strides_1 + (KW - 1) * dilations_1) / dilations_1 + 1) * dilations_1;
    struct tw_strip shape = {.C = C,
                             .KH = KH,
                             .IH = X_n1,
                             .IW = X_n2,
                             .x_row = X_s1,
                             .x_col = X_s2,
                             .width = width,
                             .dilation_0 = dilations_0,
                             .dilation_1 = dilations_1,
                             .zero = x_zero_point,
                             .flip = flip ? 0x80 : 0};
    const struct tw_places places = {.step = direct             ? strides_1 * X_s2
                                             : dilations_1 == 1 ? strides_1 * KH * C
                                                                : KH * C,
                                     .stride = strides_1,
                                     .dilation = direct ? 1 : dilations_1,
                                     .each = width / dilations_1};
    const int fours = (F + 3) / 4, most = places.dilation > 1 ? 2 : 2 * tw_max(1, tw_min(8, 64 / fours));
    int32_t *const first = scratch, *const sums = first + fours * 8;
    T *const strip = (T *)(sums + fours * 8 * tw_max(1, tw_min(8, 64 / fours)));
    tw_strip_begin(&shape);
    for (int g = 0; g < G; g++, W += fours * 4 * tw_round16(taps)) {
        struct tw_dots dots = tw_dots_of(2, flip && direct, taps, F, W, first);
        dots.step = 2 * places.step;
        tw_dots_first(first, 2, flip, B ? B + g * F : B, W, taps, F);
        for (int line = 0; line < N * OH; line++) {
            const int n = line / OH, oh = line - n * OH, ih = oh * strides_0 - pads_0;
            const T *x = X + g * C + n * X_s0;
            const int at = n * Y_s0 + oh * Y_s1 + g * F;
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
                dots.pairs = done / 2;
                for (int odd = done == 1; odd < 2; odd++) { /* the last pixel of a line may be alone */
                    if (odd) {
                        if (done % 2 == 0)
                            break;
                        dots.a0 = dots.a1 = x + tw_place(&places, ow + done - 1);
                        dots.sums = sums + done / 2 * fours * 8; /* it is stored twice */
                        dots.pairs = 1;
                    }
                    if (flip && direct)
                        tw_dot_pairs_u8(&dots);
                    else
                        tw_dot_pairs_s8(&dots);
                }
                finish(epilogue, Y, sums, done, at + ow * Y_s2, Y_s2, g * F, F);
            }
        }
    }
}
