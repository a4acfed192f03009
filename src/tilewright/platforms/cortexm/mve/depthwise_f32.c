/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1", C: "== 1", F: "== 1"}
pack: {W: "G,F,C,KH,KW -> G/4,F,C,KH,KW,G%4"}
epilogue: lanes
strided: [X, Y]
cycles: "N*((G+3)//4)*OH*OW*(KH*KW*(2+6*min(1, (max(KH, KW)-3)*(max(KH, KW)-3)+strides_0+strides_1-2)) + 20) + N*min(OH, OW)*100 + 200"
--- */
#include "tilewright_mve.h"

TW_INLINE tw_reals channels_at(const float *x, int count) { return vldrwq_z_f32(x, vctp32q((uint32_t)count)); }

/* One pixel, four channels or fewer. */
TW_INLINE tw_reals single(const struct tw_window_of_reals *t, const float *x, const float *w, tw_reals sum, int count) {
    for (int row = t->rows.begin; row < t->rows.end; row++) {
        const float *a = x + row * t->x_row + t->columns.begin * t->x_column;
        const float *b = w + row * t->w_row + t->columns.begin * t->w_column;
        for (int i = t->columns.begin; i < t->columns.end; i++, a += t->x_column, b += t->w_column)
            sum = vfmaq_f32(sum, channels_at(a, count), vldrwq_f32(b));
    }
    return sum;
}

/* Four pixels that are neighbours in the image, and filters of three columns: each input is loaded once for each row. */
TW_INLINE void quad(const struct tw_window_of_reals *t, const float *x, const float *w, tw_reals *sums) {
    tw_reals s0 = sums[0], s1 = s0, s2 = s0, s3 = s0;
    for (int row = t->rows.begin; row < t->rows.end; row++) {
        const float *a = x + row * t->x_row, *b = w + row * t->w_row;
        const tw_reals w0 = vldrwq_f32(b), w1 = vldrwq_f32(b + t->w_column), w2 = vldrwq_f32(b + 2 * t->w_column);
        tw_reals v = vldrwq_f32(a);
        s0 = vfmaq_f32(s0, v, w0);
        v = vldrwq_f32(a += t->x_column);
        s0 = vfmaq_f32(s0, v, w1), s1 = vfmaq_f32(s1, v, w0);
        v = vldrwq_f32(a += t->x_column);
        s0 = vfmaq_f32(s0, v, w2), s1 = vfmaq_f32(s1, v, w1), s2 = vfmaq_f32(s2, v, w0);
        v = vldrwq_f32(a += t->x_column);
        s1 = vfmaq_f32(s1, v, w2), s2 = vfmaq_f32(s2, v, w1), s3 = vfmaq_f32(s3, v, w0);
        v = vldrwq_f32(a += t->x_column);
        s2 = vfmaq_f32(s2, v, w2), s3 = vfmaq_f32(s3, v, w1);
        v = vldrwq_f32(a += t->x_column);
        s3 = vfmaq_f32(s3, v, w2);
    }
    sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}

TW_INLINE void put(const struct Epilogue *e, void *Y, tw_reals sum, int at, int channel, int count) {
#if STORE_HAS_LANES
    if (count >= 4) {
        STORE_LANES(e, Y, sum, at, channel);
        return;
    }
#endif
    float sums[4];
    vstrwq_f32(sums, sum);
    STORE(e, Y, sums, at, 0, channel, 1, tw_min(4, count));
}

/* Lines run along the longer axis of the result. */
static void depthwise_f32(const float *X, const float *W, const float *B, void *Y, int N, int G, int OH, int OW, int KH,
                          int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1, int Y_s2,
                          int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0, int dilations_1,
                          const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const int turned = OH > OW;
    const struct tw_axis rows = {OH, X_n1, X_s1, Y_s1, strides_0, pads_0, dilations_0, KH};
    const struct tw_axis cols = {OW, X_n2, X_s2, Y_s2, strides_1, pads_1, dilations_1, KW};
    const struct tw_axis across = turned ? cols : rows, along = turned ? rows : cols;
    const struct tw_span interior =
        tw_interior(along.outputs, along.inputs, along.taps, along.stride, along.dilation, along.pad);
    const int next_to = along.taps == 3 && along.stride == 1 && along.dilation == 1;
    struct tw_window_of_reals t = {.x_row = across.in_step * across.dilation,
                                   .x_column = along.in_step * along.dilation,
                                   .w_row = turned ? 4 : 4 * KW,
                                   .w_column = turned ? 4 * KW : 4};
    for (int line = 0; line < N * across.outputs; line++) {
        const int n = line / across.outputs, place = line - n * across.outputs;
        const int start = place * across.stride - across.pad;
        const float *image = X + n * X_s0 + start * across.in_step - along.pad * along.in_step;
        t.rows = tw_inside(start, across.inputs, across.taps, across.dilation);
        for (int i = 0, pixels; i < along.outputs; i += pixels) {
            const int is_inside = i >= interior.begin && i < interior.end, begin = i * along.stride;
            pixels = is_inside && next_to && interior.end - i >= 4 ? 4 : 1;
            t.columns = tw_inside(begin - along.pad, along.inputs, along.taps, along.dilation);
            const float *x = image + begin * along.in_step, *w = W;
            const int at = n * Y_s0 + place * across.out_step + i * along.out_step;
            for (int g = 0; g < G; g += 4, w += KH * KW * 4) {
                const tw_reals bias = B ? channels_at(B + g, G - g) : vdupq_n_f32(0.0f);
                if (pixels == 4 && g + 4 <= G) {
                    tw_reals sums[4] = {bias};
                    quad(&t, x + g, w, sums);
                    for (int j = 0; j < 4; j++)
                        put(&e, Y, sums[j], at + j * along.out_step + g, g, 4);
                } else {
                    for (int j = 0; j < pixels; j++)
                        put(&e, Y, single(&t, x + j * along.in_step * along.stride + g, w, bias, G - g),
                            at + j * along.out_step + g, g, G - g);
                }
            }
        }
    }
}
