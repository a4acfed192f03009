/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", C: "== 1", F: "== 1", KH: "<= 8", KW: "<= 8", X_n1: "<= 512", X_n2: "<= 512"}
pack: {W: "G,F,C,KH,KW -> G/4,F,C,G%4,(KW,KH)/16,(KW,KH)%16"}
epilogue: lanes
strided: [X, Y]
scratch: "(max(1, min((G+7)//8, 48//max(OH, OW)))*8 + 3)*(4*min(max(OH, OW), 64)
  + (max(KH, KW)+2)*(min(max(OH, OW), 64)*max(strides_0, strides_1) + max(KH, KW)*max(dilations_0, dilations_1)) + 4) + 96"
cycles:
  dots: one(BLOCKS := sixteens(KH*KW)) * N*OH*OW * fours(G)
  long_dots: several(BLOCKS) * N*OH*OW * fours(G) * (BLOCKS + some(G))
  dilated: several(dilations_1) * N*OH*OW * fours(G)
  # Lines run along the longer axis. Two are done together where 16 bytes hold what both see of a filter's columns.
  filled: (LINES := N * ((PAIRED := one(BLOCKS) * one(dilations_0) * (strides_0 <= 2) * (((TAPS := KH * unless(TURNED := one(BLOCKS) * (OH > OW)) + KW * TURNED)
    + strides_0) * (KH*KW // TAPS) <= 16)) * twos(ACROSS := OH * unless(TURNED) + OW * TURNED) + unless(PAIRED) * ACROSS))
    * (OW * unless(TURNED) + OH * TURNED) * strides_1 * eights(G) * (TAPS + PAIRED * strides_0)
  parts: LINES * eights(G)
  lines: LINES * steps(eights(G), max(some(OW), 48 // max(OH, OW)))
  single: N*OH*OW * left_of_fours(G)
  behind: N*OH*OW * G * FUSED
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* The sums of channels by fours, each for a line of pixels. */
TW_INLINE void finish(const struct Epilogue *epilogue, void *Y, const int32_t *sums, const int32_t *bias, int pixels,
                      int at, int pitch, int channel, int count) {
    const struct Epilogue e = *epilogue;
    for (int c = 0; c < count; c += 4, bias += 4) {
        int to = at + c;
#if STORE_HAS_LANES
        if (c + 4 <= count) {
            const tw_lanes added = vldrwq_s32(bias);
            for (int i = 0; i < pixels; i++, sums += 4, to += pitch)
                STORE_LANES(&e, Y, vaddq_s32(vldrwq_s32(sums), added), to, channel + c);
            continue;
        }
#endif
        for (int i = 0; i < pixels; i++, sums += 4, to += pitch) {
            for (int j = 0; j < 4 && c + j < count; j++)
                STORE_1(&e, Y, sums[j] + bias[j], to + j, channel + c + j);
        }
    }
}

/* Sums of filters of more than 16 taps. */
TW_APART void sums_of(const struct tw_plane_dots *d, int blocks) {
    int32_t *sums = d->sums;
    for (int c = 0; c < d->fours * 4; c++, sums += c % 4 ? 0 : d->pixels * 4) {
        const int8_t *w = d->w + c * blocks * 16;
        for (int i = 0; i < d->pixels; i++) {
            const int8_t *x = (const int8_t *)d->x + c * d->pitch + i * d->step;
            int32_t sum = 0;
            for (int k = 0; k < blocks; k++)
                sum = vmladavaq_s8(sum, vldrbq_s8(x + k * 16), vldrbq_s8(w + k * 16));
            sums[i * 4 + c % 4] = sum;
        }
    }
}

/* What sums begin with: the bias, and 128 * sum(w) where 128 is taken off the inputs. */
TW_APART void bias_of(int32_t *bias, const int32_t *B, const int8_t *w, int blocks, int channels) {
    for (int c = 0; c < (channels + 3) / 4 * 4; c++) {
        bias[c] = B && c < channels ? B[c] : 0;
        for (int k = 0; k < blocks && (T)-1 > 0; k++)
            bias[c] += 128 * vaddvq_s8(vldrbq_s8(w + (c * blocks + k) * 16));
    }
}

/* Lines run along the longer axis of the result. All that a line sees is turned into planes first, eight channels at a
 * time, and where lines are short more of them before they are used. Where 16 bytes hold all that two lines see of a
 * filter's columns, they are done together. */
static void depthwise_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int OH, int OW, int KH,
                         int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1, int Y_s2,
                         int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0, int dilations_1,
                         int x_zero_point, void *scratch, const struct Epilogue *epilogue) {
    const int blocks = (KH * KW + 15) / 16, flip = (T)-1 > 0 ? 0x80 : 0, turned = OH > OW && blocks == 1;
    const struct tw_axis rows = {OH, X_n1, X_s1, Y_s1, strides_0, pads_0, dilations_0, KH};
    const struct tw_axis cols = {OW, X_n2, X_s2, Y_s2, strides_1, pads_1, dilations_1, KW};
    const struct tw_axis across = turned ? cols : rows, along = turned ? rows : cols;
    const int both =
        across.dilation == 1 && across.stride <= 2 && (across.taps + across.stride) * along.taps <= 16 && KH * KW < 16;
    const int taps = across.taps + (both ? across.stride : 0);
    const int most = tw_min(along.outputs, 64), many = tw_max(1, tw_min((G + 7) / 8, 48 / tw_max(OH, OW))) * 8;
    const int each = ((most - 1) * along.stride + (along.taps - 1) * along.dilation) / along.dilation + 1;
    const int pitch = each * along.dilation * taps;
    int32_t *const bias = scratch, *const sums = bias + many;
    uint8_t *const outside = (uint8_t *)(sums + many * most), *const order = outside + 16;
    char *const planes = (char *)order + 32;
    int filled = -1;
    vst1q_u8(outside, vdupq_n_u8((uint8_t)x_zero_point));
    vst1q_u8(order, vdupq_n_u8(15));
    vst1q_u8(order + 16, vdupq_n_u8(15));
    for (int i = 0; i < KH * KW && blocks == 1; i++) { /* where each tap is, of the first line and of the second */
        const int at = turned ? i % KH * taps + i / KH : i / KH * taps + i % KH;
        order[at] = (uint8_t)i;
        if (both)
            order[16 + at + across.stride] = (uint8_t)i;
    }
    struct tw_planes fill = {.pitch = pitch, .taps = taps, .flip = flip};
    struct tw_plane_dots dots = {.pitch = pitch, .step = taps * along.stride};
    const int lines = across.outputs * N, chunks = (along.outputs + most - 1) / most;
    for (int g = 0; g < G; g += many) {
        const int channels = tw_min(many, G - g);
        const int32_t *added = B && !flip && channels % 4 == 0 ? B + g : bias;
        if (added == bias)
            bias_of(bias, B ? B + g : B, W + g * blocks * 16, blocks, channels);
        for (int line = 0, done; line < lines * chunks; line += done) {
            const int first = line / lines * most, pixels = tw_min(most, along.outputs - first);
            const int n = line % lines / across.outputs, place = line % across.outputs;
            const int begin = first * along.stride - along.pad, start = place * across.stride - across.pad;
            done = both && place + 1 < across.outputs ? 2 : 1;
            for (int phase = 0; phase < along.dilation; phase++) {
                const struct tw_span inside = tw_inside(begin + phase, along.inputs, each, along.dilation);
                const int from = begin + phase + inside.begin * along.dilation;
                for (int tap = 0; tap < taps; tap++) {
                    const int at = start + tap * across.dilation, is_inside = at >= 0 && at < across.inputs;
                    const T *x = X + n * X_s0 + at * across.in_step + from * along.in_step;
                    fill.lines[tap] = is_inside ? (const uint8_t *)x : outside;
                    fill.steps[tap] = is_inside ? along.in_step * along.dilation : 0;
                }
                fill.to = planes + phase * each * taps;
                if (filled != first) { /* what is outside stays there for all lines */
                    tw_planes_outside(&fill, 0, inside.begin, many, x_zero_point ^ flip);
                    tw_planes_outside(&fill, inside.end, each, many, x_zero_point ^ flip);
                }
                fill.to += inside.begin * taps;
                tw_planes_fill(&fill, g, channels, inside.end - inside.begin);
            }
            filled = first;
            /* Where columns that are apart were made neighbours, pixels are not the same step apart. */
            const int group = along.dilation > 1 ? 1 : pixels;
            for (int i = 0; i < pixels * done; i += group) {
                const int second = i >= pixels, pixel = second ? i - pixels : i, where = pixel * along.stride;
                const int at = n * Y_s0 + (place + second) * across.out_step + (first + pixel) * along.out_step + g;
                dots.x = planes + (where % along.dilation * each + where / along.dilation) * taps;
                dots.w = W + g * blocks * 16;
                dots.order = order + 16 * second;
                dots.sums = sums;
                dots.pixels = group;
                dots.fours = (channels + 3) / 4;
                if (blocks > 1)
                    sums_of(&dots, blocks);
                else
                    tw_plane_dots(&dots);
                finish(epilogue, Y, sums, added, group, at, along.out_step, g, channels);
            }
        }
    }
}
