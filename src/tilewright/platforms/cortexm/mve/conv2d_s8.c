/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1"}
pack: {W: "G,F,C,KH,KW -> G,F/4,(KW,KH,C)/16,F%4,(KW,KH,C)%16"}
epilogue: lanes
strided: [X, Y]
scratch: "64*((F+3)//4) + (1-(KH*KW==1)*(pads_0==0)*(pads_1==0)*(pads_2==0)*(pads_3==0))
  *KH*C*((((OW-1)*strides_1 + (KW-1)*dilations_1)//dilations_1+1)*dilations_1)"
cycles: "G*(N*OH*((OW+1)//2)*(((F+3)//4)*(((KH*KW*C+15)//16)*14.5 + 11) + ((F+3)//4)*22 + 60)
  + N*OH*min(KH*KW-1, 1)*(100 + KH*OW*strides_1*((C+15)//16*3+6))) + 300"
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* The sums of a pixel, every second four of a panel. */
TW_INLINE void finish(const struct Epilogue *epilogue, void *Y, const int32_t *sums, int at, int channel, int count) {
    int f = 0;
#if STORE_HAS_LANES
    const struct Epilogue e = *epilogue;
    for (; f + 4 <= count; f += 4, sums += 16)
        STORE_LANES(&e, Y, vldrwq_s32(sums), at + f, channel + f);
#else
    for (; f + 4 <= count; f += 4, sums += 16)
        STORE_4(epilogue, Y, sums[0], sums[1], sums[2], sums[3], at + f, channel + f);
#endif
    for (; f < count; f++)
        STORE_1(epilogue, Y, sums[f % 4], at + f, channel + f);
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
    if (direct && strides_0 * strides_1 == 1 && X_s1 == OW * X_s2 &&
        Y_s1 == OW * Y_s2) { /* the image is one long line */
        OW *= OH;
        OH = 1;
    }
    const int width = (((OW - 1) * strides_1 + (KW - 1) * dilations_1) / dilations_1 + 1) * dilations_1;
    const struct tw_strip shape = {.C = C,
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
    int32_t *const panel = scratch;
    T *const strip = (T *)(panel + (F + 3) / 4 * 16);
    const int next = direct ? strides_1 * X_s2 : KH * C;
    for (int g = 0; g < G; g++, W += (F + 3) / 4 * 4 * tw_round16(taps)) {
        struct tw_dots dots = tw_dots_of(2, flip && direct, taps, F, W, panel);
        tw_dots_panel(panel, 2, flip, B ? B + g * F : B, W, taps, F);
        for (int line = 0; line < N * OH; line++) {
            const int n = line / OH, oh = line - n * OH, ih = oh * strides_0 - pads_0;
            const T *x = X + g * C + n * X_s0 + ih * X_s1 - pads_1 * X_s2;
            int at = n * Y_s0 + oh * Y_s1 + g * F;
            if (!direct) {
                tw_strip_fill(&shape, x, ih, -pads_1, strip);
                x = strip;
            }
            for (int ow = 0; ow < OW; ow += 2, at += 2 * Y_s2) {
                int place = ow * next, second = place + next;
                if (!direct) { /* columns that are `dilations_1` apart are neighbours */
                    const int from = ow * strides_1, to = from + strides_1;
                    place = from * next, second = to * next;
                    if (dilations_1 > 1) {
                        place = (from % dilations_1 * (width / dilations_1) + from / dilations_1) * next;
                        second = (to % dilations_1 * (width / dilations_1) + to / dilations_1) * next;
                    }
                }
                dots.a0 = x + place;
                dots.a1 = x + (ow + 1 < OW ? second : place);
                if (flip && direct)
                    tw_dot_pairs_u8(&dots);
                else
                    tw_dot_pairs_s8(&dots);
                finish(epilogue, Y, panel + 8, at, g * F, F);
                if (ow + 1 < OW)
                    finish(epilogue, Y, panel + 12, at + Y_s2, g * F, F);
            }
        }
    }
}
