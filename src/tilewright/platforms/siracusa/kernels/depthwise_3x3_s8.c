/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", C: "== 1", F: "== 1", KH: "== 3", KW: "== 3"}
pack: {W: "G,F,C,KH,KW -> G/4,F,C,KH/4,KW,G%4,KH%4"}
epilogue: row
strided: [X, Y]
scratch: "16*((KH+3)//4)*max((min(max(OH, OW), 64)+3)*max(strides_0, strides_1)
  + (max(KH, KW)-1)*max(dilations_0, dilations_1) + 1, min(104, min(OH, OW)*((min(max(OH, OW), 64)+3)*max(strides_0, strides_1)
  + (max(KH, KW)-1)*max(dilations_0, dilations_1) + 1)))"
# Lines along the longer axis of the result, in pairs where nothing has strides: columns of four channels, or byte by byte; what
# is done for a line, and for a channel of as many lines as fit the columns; pixels.
cycles:
  columns: N * (LINES := (PAIRS := one(strides_0*strides_1*dilations_0*dilations_1)) * twos(min(OH, OW)) + unless(PAIRS) * min(OH, OW))
    * (WIDTH := max(OH, OW)*strides_1 + KW*dilations_1) * whole_fours(G)
  few_columns: N * LINES * WIDTH * left_of_fours(G)
  lines: N * LINES
  channels: N * G * min(LINES, max(eights(LINES), eights(sixteens(LINES * WIDTH))))
  pairs: N * G * LINES * max(OH, OW) * PAIRS
  single: N * G * LINES * max(OH, OW) * unless(PAIRS)
  behind: unless(SHIFTS * STEPS) * N*OH*OW * G * FUSED
  call: some(N)
--- */
#include "tilewright_kernel.h"
#include "tilewright_pairs.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

TW_INLINE int32_t dot(const T *X, int32_t sum, uint32_t a, uint32_t b, uint32_t c, const uint32_t *w) {
    sum = TW_FOR_BYTES(X, tw_sdot)(sum, a, w[0]);
    sum = TW_FOR_BYTES(X, tw_sdot)(sum, b, w[1]);
    return TW_FOR_BYTES(X, tw_sdot)(sum, c, w[2]);
}

/* One channel of a line of results, or of two that see the same four lines of the image. */
TW_INLINE void line_of(const struct tw_slide *s, const T *X, const uint32_t *t, const uint32_t *w, int32_t bias,
                       void *Y, int to, int channel, const struct Epilogue *e) {
    const int next = s->next, step = s->step, dilation = s->dilation;
    int left = s->pixels;
    if (step != 4 || dilation != 4) {
        for (; left > 0; left--, t += step, to += next)
            STORE_1(e, Y, dot(X, bias, t[0], t[dilation], t[2 * dilation], w), to, channel);
        return;
    }
    uint32_t v0 = t[0], v1 = t[4], v2;
    t += 8;
    for (; left > 0; left--, t += 4, v0 = v1, v1 = v2, to += next) {
        v2 = t[0];
        STORE_1(e, Y, dot(X, bias, v0, v1, v2, w), to, channel);
    }
}
#if STORE_SCALES || STORE_SHIFTS
/* The last of an odd number of pixels is computed with the one before it, which is stored twice. */
TW_INLINE void pair_of(const struct tw_slide *s, const T *X, const uint32_t *t, const uint32_t *w, int32_t bias,
                       void *Y, int to, int channel, const struct Epilogue *e) {
    (void)channel; /* what is fused may be the same for all of them */
    const __typeof__(STORE_FACTOR(e, channel)) factor = STORE_FACTOR(e, channel);
    struct tw_pair pair = {.w = {w[0], w[1], w[2]}, .u = {w[0] << 8, w[1] << 8, w[2] << 8}, .next = s->next};
    pair.added = (int32_t)TW_FUSED_ADDED(e, bias, channel);
    pair.last = TW_FUSED_LAST(e);
    memcpy(&pair.factor, &factor, sizeof factor);
    for (int twos = s->pixels / 2, from = 0;; twos = 1, from = s->pixels - 2) {
        pair.y = (char *)Y + to + from * s->next;
        pair.second = pair.y + s->second;
        TW_FOR_BYTES(X, tw_pair)(&pair, t + 4 * from, twos, STORE_SHIFTS, STORE_SIGNED);
        if (from || s->pixels % 2 == 0)
            return;
    }
}
#else
TW_INLINE void pair_of(const struct tw_slide *s, const T *X, const uint32_t *t, const uint32_t *w, int32_t bias,
                       void *Y, int to, int channel, const struct Epilogue *e) {
    const uint32_t u[3] = {w[0] << 8, w[1] << 8, w[2] << 8}; /* those of the second line */
    const int next = s->next;
    int left = s->pixels, below = to + s->second;
    uint32_t v0 = t[0], v1 = t[4], v2, v3;
    t += 8;
    for (; left >= 4; left -= 4, t += 16) {
        v2 = t[0];
        STORE_1(e, Y, dot(X, bias, v0, v1, v2, w), to, channel);
        STORE_1(e, Y, dot(X, bias, v0, v1, v2, u), below, channel);
        v3 = t[4], to += next, below += next;
        STORE_1(e, Y, dot(X, bias, v1, v2, v3, w), to, channel);
        STORE_1(e, Y, dot(X, bias, v1, v2, v3, u), below, channel);
        v0 = t[8], to += next, below += next;
        STORE_1(e, Y, dot(X, bias, v2, v3, v0, w), to, channel);
        STORE_1(e, Y, dot(X, bias, v2, v3, v0, u), below, channel);
        v1 = t[12], to += next, below += next;
        STORE_1(e, Y, dot(X, bias, v3, v0, v1, w), to, channel);
        STORE_1(e, Y, dot(X, bias, v3, v0, v1, u), below, channel);
        to += next, below += next;
    }
    for (; left > 0; left--, t += 4, v0 = v1, v1 = v2, to += next, below += next) {
        v2 = t[0];
        STORE_1(e, Y, dot(X, bias, v0, v1, v2, w), to, channel);
        STORE_1(e, Y, dot(X, bias, v0, v1, v2, u), below, channel);
    }
}
#endif

TW_INLINE void slide(const int pairs, const struct tw_slide *s, const struct tw_four_rows *rows, const T *X,
                     const uint32_t *W, const int32_t *B, void *Y, int at, int channels, uint32_t *columns,
                     const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    for (int channel = 0; channel < channels; channel++, W += channel % 4 ? 1 : 9) {
        for (int line = 0; channel % 4 == 0 && line < s->lines; line++) {
            uint32_t *to = columns + line * s->width * 4;
            if (channels - channel >= 4)
                tw_turned_columns(rows + line, channel, s->end - s->begin, to + s->begin * 4);
            else
                tw_few_columns(rows + line, channel, channels - channel, s->begin, s->end, to, 1, 4);
        }
        uint32_t w[3] = {W[0], W[4], W[8]};
        if (s->turned)
            tw_turn_three(w);
        const int32_t bias = B ? B[channel] : 0;
        for (int line = 0; line < s->lines; line++) {
            const uint32_t *t = columns + line * s->width * 4 + channel % 4;
            if (pairs)
                pair_of(s, X, t, w, bias, Y, at + line * s->jump + channel, channel, &e);
            else
                line_of(s, X, t, w, bias, Y, at + line * s->jump + channel, channel, &e);
        }
    }
}
TW_APART void slide_pairs(const struct tw_slide *s, const struct tw_four_rows *rows, const T *X, const uint32_t *W,
                          const int32_t *B, void *Y, int at, int channels, uint32_t *columns,
                          const struct Epilogue *epilogue) {
    slide(1, s, rows, X, W, B, Y, at, channels, columns, epilogue);
}
TW_APART void slide_lines(const struct tw_slide *s, const struct tw_four_rows *rows, const T *X, const uint32_t *W,
                          const int32_t *B, void *Y, int at, int channels, uint32_t *columns,
                          const struct Epilogue *epilogue) {
    slide(0, s, rows, X, W, B, Y, at, channels, columns, epilogue);
}

/* Filters of 3 x 3: lines run along the longer axis of the result, and two of them are computed together where they see
 * the same four lines of the image. */
static void three(const T *X, const int8_t *W, const int32_t *B, void *Y, int start, int channels,
                  const struct tw_axis *across, const struct tw_axis *along, int turned, int zero, uint32_t *columns,
                  const struct Epilogue *epilogue) {
    const uint32_t outside = (uint32_t)(zero & 0xFF) * 0x01010101u;
    const int together = across->stride * across->dilation * along->stride * along->dilation == 1;
    struct tw_four_rows rows[8];
    struct tw_slide s = {
        .step = 4 * along->stride, .dilation = 4 * along->dilation, .next = along->out_step, .turned = turned};
    for (int from = 0; from < along->outputs; from += s.pixels) {
        const int most = along->outputs - from;
        s.pixels = most == 65 ? 62 : tw_min(64, most); /* never one alone behind others */
        const int left = from * along->stride - along->pad;
        s.width = (s.pixels - 1) * along->stride + 2 * along->dilation + 1;
        s.begin = tw_min(tw_max(-left, 0), s.width);
        s.end = tw_max(tw_min(along->inputs - left, s.width), s.begin);
        for (int line = 0, done; line < across->outputs; line += done) {
            const int both = together && line + 1 < across->outputs, each = both ? 2 : 1;
            s.second = both ? across->out_step : 0;
            s.jump = each * across->out_step;
            s.lines = tw_min(tw_min(tw_max(104 / s.width, 1), 8), (across->outputs - line) / each);
            done = s.lines * each;
            for (int i = 0; i < s.lines; i++) {
                const int top = (line + i * each) * across->stride - across->pad;
                for (int row = 0; row < 4; row++) {
                    const int at = top + row * across->dilation;
                    const int inside = (row < 3 || both) && at >= 0 && at < across->inputs;
                    const T *x = X + at * across->in_step + (left + s.begin) * along->in_step;
                    rows[i].stride[row] = inside ? along->in_step : 0;
                    rows[i].x[row] = inside ? (const char *)x : (const char *)&outside;
                }
                uint32_t *to = columns + i * s.width * 4;
                for (int j = 0; j < s.begin * 4; j++)
                    to[j] = outside;
                for (int j = s.end * 4; j < s.width * 4; j++)
                    to[j] = outside;
            }
            const uint32_t *w = (const uint32_t *)(const void *)W;
            const int at = start + line * across->out_step + from * along->out_step;
            if (both)
                slide_pairs(&s, rows, X, w, B, Y, at, channels, columns, epilogue);
            else
                slide_lines(&s, rows, X, w, B, Y, at, channels, columns, epilogue);
        }
    }
}

static void depthwise_3x3_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int OH, int OW,
                             int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1, int Y_s2,
                             int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0, int dilations_1,
                             int x_zero_point, void *scratch, const struct Epilogue *epilogue) {
    const struct tw_axis down = {OH, X_n1, X_s1, Y_s1, strides_0, pads_0, dilations_0};
    const struct tw_axis right = {OW, X_n2, X_s2, Y_s2, strides_1, pads_1, dilations_1};
    for (int n = 0; n < N; n++, X += X_s0) {
        if (OH > OW)
            three(X, W, B, Y, n * Y_s0, G, &right, &down, 1, x_zero_point, scratch, epilogue);
        else
            three(X, W, B, Y, n * Y_s0, G, &down, &right, 0, x_zero_point, scratch, epilogue);
    }
}
