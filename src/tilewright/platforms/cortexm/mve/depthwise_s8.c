/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", C: "== 1", F: "== 1", KH: "<= 8", KW: "<= 8", X_n1: "<= 512", X_n2: "<= 512"}
pack: {W: "G,F,C,KH,KW -> G/4,F,C,G%4,(KW,KH)/16,(KW,KH)%16"}
epilogue: lanes
strided: [X, Y]
scratch: "16*min(max(OH, OW), 64) + 64 + 8*max(KH, KW)*(min(max(OH, OW), 64)*max(strides_0, strides_1)
  + max(KH, KW)*max(dilations_0, dilations_1))"
cycles: "N*min(OH, OW)*((G+7)//8)*(250 + max(OH, OW)*(53*((KH*KW+15)//16) + 11*max(strides_0, strides_1)*min(KH, KW)/3)) + 300"
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* The sums of four channels, or fewer, of a line of pixels. */
TW_INLINE void finish(const struct Epilogue *epilogue, void *Y, const int32_t *sums, const int32_t *bias, int pixels,
                      int at, int pitch, int channel, int count) {
    const struct Epilogue e = *epilogue;
#if STORE_HAS_LANES
    if (count == 4) {
        const tw_lanes added = vldrwq_s32(bias);
        for (int i = 0; i < pixels; i++, sums += 4, at += pitch)
            STORE_LANES(&e, Y, vaddq_s32(vldrwq_s32(sums), added), at, channel);
        return;
    }
#endif
    for (int i = 0; i < pixels; i++, sums += 4, at += pitch) {
        if (count == 4)
            STORE_4(&e, Y, sums[0] + bias[0], sums[1] + bias[1], sums[2] + bias[2], sums[3] + bias[3], at, channel);
        else
            for (int j = 0; j < count; j++)
                STORE_1(&e, Y, sums[j] + bias[j], at + j, channel + j);
    }
}

/* Sums of filters of more than 16 taps, or where pixels are not the same step apart. */
TW_APART void sums_of(const struct tw_plane_dots *d, int blocks) {
    const uint8x16_t order = vldrbq_u8(d->order);
    for (int c = 0; c < 4; c++) {
        for (int i = 0; i < d->pixels; i++) {
            int32_t sum = 0;
            for (int k = 0; k < blocks; k++) {
                const int8_t *w = d->w + (c * blocks + k) * 16;
                const int8x16_t weights = blocks > 1 ? vldrbq_s8(w) : vldrbq_gather_offset_s8(w, order);
                sum = vmladavaq_s8(sum, vldrbq_s8((const int8_t *)d->x + c * d->pitch + i * d->step + k * 16), weights);
            }
            d->sums[i * 4 + c] = sum;
        }
    }
}

/* Lines run along the longer axis of the result. Eight channels of all that a line sees are turned into planes first. */
static void depthwise_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int OH, int OW, int KH,
                         int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1, int Y_s2,
                         int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0, int dilations_1,
                         int x_zero_point, void *scratch, const struct Epilogue *epilogue) {
    const int blocks = (KH * KW + 15) / 16, flip = (T)-1 > 0 ? 0x80 : 0;
    const int turned = OH > OW && blocks == 1;
    const struct tw_axis rows = {OH, X_n1, X_s1, Y_s1, strides_0, pads_0, dilations_0, KH};
    const struct tw_axis cols = {OW, X_n2, X_s2, Y_s2, strides_1, pads_1, dilations_1, KW};
    const struct tw_axis across = turned ? cols : rows, along = turned ? rows : cols;
    const int most = tw_min(along.outputs, 64);
    const int each = ((most - 1) * along.stride + (along.taps - 1) * along.dilation) / along.dilation + 1;
    const int pitch = each * along.dilation * across.taps;
    int32_t *const sums = scratch;
    uint8_t *const outside = (uint8_t *)(sums + most * 4), *const order = outside + 16;
    char *const planes = (char *)order + 16;
    const void *lines[8];
    int steps[8], filled = -1;
    for (int i = 0; i < 16; i++) {
        outside[i] = (uint8_t)x_zero_point;
        order[i] = (uint8_t)(i < KH * KW && turned ? i % KW * KH + i / KW : i);
    }
    struct tw_planes fill = {.pitch = pitch, .taps = across.taps, .flip = flip};
    struct tw_plane_dots dots = {.pitch = pitch, .order = order, .sums = sums};
    dots.step = across.taps * along.stride / (along.dilation > 1 ? along.dilation : 1);
    for (int line = 0; line < N * across.outputs * ((along.outputs + most - 1) / most); line++) {
        const int first = line / (N * across.outputs) * most, pixels = tw_min(most, along.outputs - first);
        const int n = line % (N * across.outputs) / across.outputs, place = line % across.outputs;
        const int begin = first * along.stride - along.pad, start = place * across.stride - across.pad;
        if (filled != first) { /* what is outside stays there for all lines */
            tw_fill(planes, vdupq_n_u8((uint8_t)(x_zero_point ^ flip)), 8 * pitch);
            filled = first;
        }
        for (int g = 0; g < G; g += 8) {
            for (int phase = 0; phase < along.dilation; phase++) {
                const struct tw_span inside = tw_inside(begin + phase, along.inputs, each, along.dilation);
                const int from = begin + phase + inside.begin * along.dilation;
                for (int tap = 0; tap < across.taps; tap++) {
                    const int at = start + tap * across.dilation, is_inside = at >= 0 && at < across.inputs;
                    const T *x = X + n * X_s0 + at * across.in_step + from * along.in_step + g;
                    lines[tap] = is_inside ? (const void *)x : outside;
                    steps[tap] = is_inside ? along.in_step * along.dilation : 0;
                }
                fill.to = planes + (phase * each + inside.begin) * across.taps;
                tw_planes_fill(&fill, lines, steps, tw_min(8, G - g), inside.end - inside.begin);
            }
            for (int c = g; c < tw_min(g + 8, G); c += 4) {
                const int at = n * Y_s0 + place * across.out_step + first * along.out_step + c;
                int32_t bias[4];
                dots.w = W + c * blocks * 16;
                dots.x = planes + (c - g) * pitch;
                for (int i = 0; i < 4; i++) {
                    bias[i] = B && c + i < G ? B[c + i] : 0;
                    for (int k = 0; k < blocks && flip; k++)
                        bias[i] += 128 * vaddvq_s8(vldrbq_s8(dots.w + (i * blocks + k) * 16));
                }
                dots.pixels = along.dilation > 1 ? 1 : pixels;
                for (int i = 0; i < pixels; i += dots.pixels) {
                    const int where = i * along.stride;
                    dots.x = planes + (c - g) * pitch +
                             (where % along.dilation * each + where / along.dilation) * across.taps;
                    if (blocks > 1)
                        sums_of(&dots, blocks);
                    else
                        tw_plane_dots(&dots);
                    dots.sums += dots.pixels * 4;
                }
                dots.sums = sums;
                finish(epilogue, Y, sums, bias, pixels, at, along.out_step, c, tw_min(4, G - c));
            }
        }
    }
}
