/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1", C: "== 1", F: "== 1", KH: "== 3", KW: "== 3"}
epilogue: row
strided: [X, Y]
scratch: "12*(min(max(OH, OW), 64)*max(strides_0, strides_1) + 2*max(dilations_0, dilations_1) + 1)"
# Lines along the longer axis of the result, channel by channel (with weights turned where it is the height): columns of what
# they see, in banks that cores meet in; then three results at a time where neither stride nor dilation leaves anything out,
# others one by one. These paths and what is done at edges are cold by themselves.
cycles:
  columns: (CHANNELS := N * (SHORT := min(OH, OW)) * G) * (some(N) + some(OTHERS))
    * ((OH > OW) * (OH*strides_0 + KH*dilations_0 - X_o1) + (OH <= OW) * (OW*strides_1 + KW*dilations_1 - X_o2))
  threes: CHANNELS * (THREES := one(strides_0*strides_1*dilations_0*dilations_1) * (max(OH, OW) // KW))
  single: CHANNELS * (max(OH, OW) - THREES*KW)
  channels: CHANNELS * (some(N) + some(N) + (OH > OW))
  lines: N * SHORT
  behind: N*OH*OW * G * FUSED
  call: some(N)
  paths: FIRST * (some(THREES) + some(X_o1 + X_o2))
--- */
#include "tilewright_kernel.h"

TW_INLINE float dot(float sum, const float *l, const float *m, const float *r, const float *w) {
    sum = __builtin_fmaf(l[2], w[6], __builtin_fmaf(l[1], w[3], __builtin_fmaf(l[0], w[0], sum)));
    sum = __builtin_fmaf(m[2], w[7], __builtin_fmaf(m[1], w[4], __builtin_fmaf(m[0], w[1], sum)));
    return __builtin_fmaf(r[2], w[8], __builtin_fmaf(r[1], w[5], __builtin_fmaf(r[0], w[2], sum)));
}

/* One channel of a line of results from columns of three numbers. Neighbours share columns, which stay in registers. */
TW_APART void slide(const struct tw_slide *s, const float *t, const float *w, float bias, void *Y, int at, int channel,
                    const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const float taps[9] = {w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8]};
    const int next = s->next, step = s->step, dilation = s->dilation;
    int left = s->pixels;
    if (step == 3 && dilation == 3) {
        float a[3] = {t[0], t[1], t[2]}, b[3] = {t[3], t[4], t[5]}, c[3];
        for (; left >= 3; left -= 3, t += 9, at += next) {
            c[0] = t[6], c[1] = t[7], c[2] = t[8];
            STORE_1(&e, Y, dot(bias, a, b, c, taps), at, channel);
            a[0] = t[9], a[1] = t[10], a[2] = t[11], at += next;
            STORE_1(&e, Y, dot(bias, b, c, a, taps), at, channel);
            b[0] = t[12], b[1] = t[13], b[2] = t[14], at += next;
            STORE_1(&e, Y, dot(bias, c, a, b, taps), at, channel);
        }
    }
    for (; left > 0; left--, t += step, at += next)
        STORE_1(&e, Y, dot(bias, t, t + dilation, t + 2 * dilation, taps), at, channel);
}

/* Some channels. Lines run along the longer axis of the result. */
TW_INLINE void lines(const float *X, const float *W, const float *B, void *Y, int start, int first, int behind,
                     const struct tw_axis *across, const struct tw_axis *along, const int turned, float *columns,
                     const struct Epilogue *epilogue) {
    const float none = 0;
    struct tw_slide s = {.step = 3 * along->stride, .dilation = 3 * along->dilation, .next = along->out_step};
    for (int from = 0; from < along->outputs; from += 64) {
        s.pixels = tw_min(64, along->outputs - from);
        const int left = from * along->stride - along->pad;
        const int count = (s.pixels - 1) * along->stride + 2 * along->dilation + 1;
        const int begin = tw_min(tw_max(-left, 0), count), end = tw_max(tw_min(along->inputs - left, count), begin);
        for (int i = 0; i < begin * 3; i++)
            columns[i] = 0;
        for (int i = end * 3; i < count * 3; i++)
            columns[i] = 0;
        for (int line = 0; line < across->outputs; line++) {
            struct tw_four_rows rows = {0};
            int moves[3];
            for (int row = 0; row < 3; row++) {
                const int at = line * across->stride - across->pad + row * across->dilation;
                const int inside = at >= 0 && at < across->inputs;
                const float *x = inside ? X + first + at * across->in_step + (left + begin) * along->in_step : &none;
                rows.x[row] = (const char *)x;
                rows.stride[row] = inside ? along->in_step * 4 : 0;
                moves[row] = inside ? 4 : 0;
            }
            for (int channel = first; channel < behind; channel++) {
                const float *w = W + channel * 9, t[9] = {w[0], w[3], w[6], w[1], w[4], w[7], w[2], w[5], w[8]};
                tw_columns_of_three(&rows, end - begin, columns + begin * 3);
                slide(&s, columns, turned ? t : w, B ? B[channel] : 0, Y,
                      start + line * across->out_step + from * along->out_step + channel, channel, epilogue);
                rows.x[0] += moves[0], rows.x[1] += moves[1], rows.x[2] += moves[2];
            }
        }
    }
}

static void depthwise_3x3_f32(const float *X, const float *W, const float *B, void *Y, int N, int G, int OH, int OW,
                              int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1, int Y_s2,
                              int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0, int dilations_1,
                              void *scratch, const struct Epilogue *epilogue) {
    const struct tw_axis down = {OH, X_n1, X_s1, Y_s1, strides_0, pads_0, dilations_0};
    const struct tw_axis right = {OW, X_n2, X_s2, Y_s2, strides_1, pads_1, dilations_1};
    /* Cores that work on other lines of the same channels would read from the same banks at the same time: each begins
     * with a channel of its own, by the number of its first line in memory. Short lines are done before that matters. */
    const int turned = (X_s2 == G || Y_s2 == G) && G * OW >= 96;
    const int first = turned ? (int)((uintptr_t)X / sizeof(float) / (unsigned)X_s1 % (unsigned)G) : 0;
    for (int n = 0; n < N; n++, X += X_s0) {
        for (int begin = first, behind = G; behind > 0; behind = begin, begin = 0) {
            if (OH > OW)
                lines(X, W, B, Y, n * Y_s0, begin, behind, &right, &down, 1, scratch, epilogue);
            else
                lines(X, W, B, Y, n * Y_s0, begin, behind, &down, &right, 0, scratch, epilogue);
        }
    }
}
