/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1", C: "== 1", F: "== 1"}
pack: {W: "G,F,C,KH,KW -> G/4,F,C,KH,KW,G%4"}
epilogue: lanes
strided: [X, Y]
scratch: "80*((G+3)//4)"
cycles:
  # Lines run along the longer axis; with three taps along it, and no gaps, they are done by fours of pixels.
  rows_of_four: (BY_FOURS := (TURNED := (OH > OW) * 1) * (KH == 3) * (strides_0 <= 2) * one(dilations_0)
    + unless(TURNED) * (KW == 3) * (strides_1 <= 2) * one(dilations_1)) * N*OH*OW * whole_fours(G) * (ROWS := TURNED * KW + unless(TURNED) * KH)
  taps: unless(BY_FOURS) * N * fours(G) * (OH*KH - beyond(X_o1, strides_0) / dilations_0) * (OW*KW - beyond(X_o2, strides_1) / dilations_1)
  rows: unless(BY_FOURS) * N*OH*OW * fours(G) * ROWS
  quads: N*OH*OW * fours(G)
  pixels: N*OH*OW
  single: N*OH*OW * left_of_fours(G)
  left_taps: BY_FOURS * N*OH*OW * ragged_fours(G) * KH*KW
  behind: N*OH*OW * G * FUSED
--- */
#include "tilewright_mve.h"

/* One pixel: fours of channels, of which the last may be fewer. */
TW_APART void single(const struct tw_window_of_reals *window, const float *x, const float *w, const float *bias,
                     float *sums, int channels) {
    const struct tw_window_of_reals t = *window;
    const int columns = t.columns.end - t.columns.begin;
    x += t.rows.begin * t.x_row + t.columns.begin * t.x_column;
    w += t.rows.begin * t.w_row + t.columns.begin * t.w_column;
    for (; channels > 0; channels -= 4, x += 4, w += t.w_next, bias += 4, sums += 4) {
        const mve_pred16_t some = vctp32q((uint32_t)channels);
        const float *a = x, *b = w;
        tw_reals sum = vldrwq_f32(bias);
        for (int row = t.rows.begin; row < t.rows.end; row++) {
            if (channels >= 4)
                for (int i = 0; i < columns; i++, a += t.x_column, b += t.w_column)
                    sum = vfmaq_f32(sum, vldrwq_f32(a), vldrwq_f32(b));
            else
                for (int i = 0; i < columns; i++, a += t.x_column, b += t.w_column)
                    sum = vfmaq_f32(sum, vldrwq_z_f32(a, some), vldrwq_f32(b));
            a += t.x_row - columns * t.x_column;
            b += t.w_row - columns * t.w_column;
        }
        vstrwq_f32(sums, sum);
    }
}

/* Four pixels and filters of three columns: each input is loaded once for each row. */
#define DEPTHWISE_INPUT "vldrw.32 %q[v], [%[a]]\nadd %[a], %[x_column]\n"
#define DEPTHWISE_WEIGHT(w) "vldrw.32 %q[" w "], [%[b]]\nadd %[b], %[w_column]\n"
#define DEPTHWISE_SUM(s, w) "vfma.f32 %q[" s "], %q[v], %q[" w "]\n"
#define DEPTHWISE_ROW(SUMS)                                                                                            \
    __asm__ volatile(DEPTHWISE_WEIGHT("w0") DEPTHWISE_WEIGHT("w1") DEPTHWISE_WEIGHT("w2") SUMS                         \
                     : [s0] "+w"(s0), [s1] "+w"(s1), [s2] "+w"(s2), [s3] "+w"(s3), [w0] "=&w"(w0), [w1] "=&w"(w1),     \
                       [w2] "=&w"(w2), [v] "=&w"(v), [a] "+&r"(a), [b] "+&r"(b)                                        \
                     : [x_column] "r"(t.x_column * 4), [w_column] "r"(t.w_column * 4)                                  \
                     : "memory")
#define DEPTHWISE_NEXT                                                                                                 \
    DEPTHWISE_INPUT DEPTHWISE_SUM("s0", "w0") DEPTHWISE_INPUT DEPTHWISE_SUM("s0", "w1") DEPTHWISE_SUM("s1", "w0")      \
        DEPTHWISE_INPUT DEPTHWISE_SUM("s0", "w2") DEPTHWISE_SUM("s1", "w1") DEPTHWISE_SUM("s2", "w0")                  \
            DEPTHWISE_INPUT DEPTHWISE_SUM("s1", "w2") DEPTHWISE_SUM("s2", "w1") DEPTHWISE_SUM("s3", "w0")              \
                DEPTHWISE_INPUT DEPTHWISE_SUM("s2", "w2") DEPTHWISE_SUM("s3", "w1")                                    \
                    DEPTHWISE_INPUT DEPTHWISE_SUM("s3", "w2")
#define DEPTHWISE_SECOND                                                                                               \
    DEPTHWISE_INPUT DEPTHWISE_SUM("s0", "w0") DEPTHWISE_INPUT DEPTHWISE_SUM("s0", "w1")                                \
        DEPTHWISE_INPUT DEPTHWISE_SUM("s0", "w2") DEPTHWISE_SUM("s1", "w0") DEPTHWISE_INPUT DEPTHWISE_SUM("s1", "w1")  \
            DEPTHWISE_INPUT DEPTHWISE_SUM("s1", "w2") DEPTHWISE_SUM("s2", "w0")                                        \
                DEPTHWISE_INPUT DEPTHWISE_SUM("s2", "w1") DEPTHWISE_INPUT DEPTHWISE_SUM("s2", "w2")                    \
                    DEPTHWISE_SUM("s3", "w0") DEPTHWISE_INPUT DEPTHWISE_SUM("s3", "w1")                                \
                        DEPTHWISE_INPUT DEPTHWISE_SUM("s3", "w2")
TW_APART void line_of(const struct tw_window_of_reals *window, int stride, const float *x, const float *w,
                      const float *bias, float *sums, int pitch, int channels) {
    const struct tw_window_of_reals t = *window;
    const int rows = t.rows.end - t.rows.begin;
    x += t.rows.begin * t.x_row;
    w += t.rows.begin * t.w_row;
    for (; channels >= 4; channels -= 4, x += 4, w += t.w_next, bias += 4, sums += 4) {
        const float *line = x, *filter = w;
        tw_reals s0 = vldrwq_f32(bias), s1 = s0, s2 = s0, s3 = s0, w0, w1, w2, v;
        for (int row = 0; row < rows; row++, line += t.x_row, filter += t.w_row) {
            const float *a = line, *b = filter;
            if (stride == 1)
                DEPTHWISE_ROW(DEPTHWISE_NEXT);
            else
                DEPTHWISE_ROW(DEPTHWISE_SECOND);
        }
        vstrwq_f32(sums, s0);
        vstrwq_f32(sums + pitch, s1);
        vstrwq_f32(sums + 2 * pitch, s2);
        vstrwq_f32(sums + 3 * pitch, s3);
    }
}

/* The channels of a pixel. */
TW_INLINE void finish(const struct Epilogue *epilogue, void *Y, const float *sums, int at, int count) {
    const struct Epilogue e = *epilogue;
    int c = 0;
#if STORE_HAS_LANES
    for (; c + 4 <= count; c += 4, sums += 4)
        STORE_LANES(&e, Y, vldrwq_f32(sums), at + c, c);
#endif
    for (; c < count; c += 4, sums += 4)
        STORE(&e, Y, sums, at + c, 0, c, 1, tw_min(4, count - c));
}

/* Lines run along the longer axis of the result. */
static void depthwise_f32(const float *X, const float *W, const float *B, void *Y, int N, int G, int OH, int OW, int KH,
                          int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1, int Y_s2,
                          int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0, int dilations_1,
                          void *scratch, const struct Epilogue *epilogue) {
    const int turned = OH > OW, pitch = (G + 3) / 4 * 4, whole = G & ~3;
    const struct tw_axis rows = {OH, X_n1, X_s1, Y_s1, strides_0, pads_0, dilations_0, KH};
    const struct tw_axis cols = {OW, X_n2, X_s2, Y_s2, strides_1, pads_1, dilations_1, KW};
    const struct tw_axis across = turned ? cols : rows, along = turned ? rows : cols;
    const struct tw_span interior =
        tw_interior(along.outputs, along.inputs, along.taps, along.stride, along.dilation, along.pad);
    const int by_fours = along.taps == 3 && along.stride <= 2 && along.dilation == 1;
    float *const bias = scratch, *const sums = bias + pitch;
    struct tw_window_of_reals t = {.x_row = across.in_step * across.dilation,
                                   .x_column = along.in_step * along.dilation,
                                   .w_row = turned ? 4 : 4 * KW,
                                   .w_column = turned ? 4 * KW : 4,
                                   .w_next = 4 * KH * KW};
    for (int g = 0; g < pitch; g++)
        bias[g] = B && g < G ? B[g] : 0.0f;
    for (int line = 0; line < N * across.outputs; line++) {
        const int n = line / across.outputs, place = line - n * across.outputs;
        const int start = place * across.stride - across.pad;
        const float *image = X + n * X_s0 + start * across.in_step - along.pad * along.in_step;
        t.rows = tw_inside(start, across.inputs, across.taps, across.dilation);
        for (int i = 0, pixels; i < along.outputs; i += pixels) {
            const int is_inside = i >= interior.begin && i < interior.end, begin = i * along.stride;
            const float *x = image + begin * along.in_step;
            const int at = n * Y_s0 + place * across.out_step + i * along.out_step, next = along.stride * along.in_step;
            pixels = is_inside && by_fours && interior.end - i >= 4 ? 4 : 1;
            t.columns = tw_inside(begin - along.pad, along.inputs, along.taps, along.dilation);
            if (pixels == 4)
                line_of(&t, along.stride, x, W, bias, sums, pitch, whole);
            for (int j = 0; j < pixels; j++) {
                const int c = pixels == 4 ? whole : 0;
                if (c < G)
                    single(&t, x + j * next + c, W + c * KH * KW, bias + c, sums + j * pitch + c, G - c);
                finish(epilogue, Y, sums + j * pitch, at + j * along.out_step, G);
            }
        }
    }
}
