/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", C: "C % 4 == 0", X_s2: "X_s2 % 4 == 0", X_s1: "X_s1 % 4 == 0", X_s0: "X_s0 % 4 == 0", x_zero_point: "== 0"}
pack: {W: "G,F,C,KH,KW -> G,F/4,KH,KW,C/4,F%4,C%4"}
epilogue: row
strided: [X, Y]
scratch: "C"
# Blocks of four pixels of a line and four channels, which cores take in turn: words of a block, rows of the filter, which
# are one run each where all taps lie inside, side by side, and one for each tap elsewhere; and results, which are single where
# there are no four channels.
cycles:
  words: (BLOCKS := steps(G * N * OH * fours(OW) * fours(F), PARTS)) * (ROWS := max(KH - beyond(X_o1, strides_0) / max(dilations_0 * OH, dilations_0), some(KH))) * KW * words(C)
  runs: BLOCKS * ROWS * (some(N) + (KW - some(KW)) * min(some(X_s2 - C) + several(dilations_1) + X_o2 / max(fours(OW), some(KW)), some(N)))
  blocks: BLOCKS
  single: BLOCKS * ragged_fours(F)
  behind: BLOCKS * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"
#include "tilewright_pool.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Adds `words` words of rows that begin at `x` and of columns at `w`, from word `start` on. */
TW_INLINE void add_run(struct tw_pool_dot *dot, const T *const x[4], const int8_t *w, int words, int start) {
    for (int i = 0; i < 4; i++)
        dot->a[i] = x[i] + 4 * start;
    dot->b = w + 16 * start;
    dot->first = 16 * (words - start);
    dot->second = 16 * start;
    dot->row = 4 * words;
    dot->columns = 16 * words;
    if (((T)-1) < 0)
        tw_pool_dot_s8(dot);
    else
        tw_pool_dot_u8(dot);
}

static void conv2d_pool_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int F, int OH, int OW,
                           int C, int KH, int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1,
                           int Y_s2, int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0,
                           int dilations_1, int PART, int PARTS, void *scratch, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const int words = C >> 2, together = KW == 1 || (dilations_1 == 1 && X_s2 == C);
    const int along = (OW + 3) >> 2, deep = (F + 3) >> 2, lines = N * G * OH * along, blocks = lines * deep;
    struct tw_pool_dot dot;
    int32_t *const zeros = scratch;
    for (int i = 0; i < words; i++)
        zeros[i] = 0;
    for (int block = PART; block < blocks; block += PARTS) {
        /* Of sixteen blocks of pixels, neighbours take those that lie in different groups; they begin at different words. Next
         * time a core has another part of the line, as those at edges take longer. */
        const int deep_at = block % deep, at = block / deep, f = 4 * deep_at;
        const int line = (at | 15) < lines ? (at & ~15) + ((at + 4 * deep_at + (at >> 4)) & 15) : at;
        const int ow = 4 * (line % along), rest = line / along;
        const int oh = rest % OH, g = rest / OH % G, n = rest / OH / G;
        const int pixels = tw_min(OW - ow, 4), channels = tw_min(F - f, 4), channel = g * F + f;
        const int ih = oh * strides_0 - pads_0, iw = ow * strides_1 - pads_1;
        const int last = iw + (pixels - 1) * strides_1 + (KW - 1) * dilations_1;
        const int inside = together && iw >= 0 && last < X_n2;
        const T *const image = X + n * X_s0 + g * C;
        const int8_t *w = W + (g * deep * 4 + f) * KH * KW * C;
        tw_pool_begin(&dot, B ? B + channel : B, channels);
        for (int kh = 0; kh < KH; kh++, w += 4 * KW * C) {
            const int row_at = ih + kh * dilations_0;
            if (row_at < 0 || row_at >= X_n1)
                continue;
            const T *const row = image + row_at * X_s1;
            const T *x[4];
            if (inside) {
                for (int i = 0; i < 4; i++)
                    x[i] = row + (iw + tw_min(i, pixels - 1) * strides_1) * X_s2;
                add_run(&dot, x, w, KW * words, (block * 5 + PART) % (KW * words));
                continue;
            }
            for (int kw = 0; kw < KW; kw++) {
                for (int i = 0; i < 4; i++) {
                    const int col = iw + tw_min(i, pixels - 1) * strides_1 + kw * dilations_1;
                    x[i] = col >= 0 && col < X_n2 ? row + col * X_s2 : (const T *)zeros;
                }
                add_run(&dot, x, w + 4 * kw * C, words, (block * 5 + PART) % words);
            }
        }
        for (int i = 0; i < pixels; i++) {
            const int32_t *sum = dot.sum + 4 * i;
            const int to = n * Y_s0 + oh * Y_s1 + (ow + i) * Y_s2 + channel;
            if (channels == 4)
                STORE_4(&e, Y, sum[0], sum[1], sum[2], sum[3], to, channel);
            else
                STORE(epilogue, Y, sum, to, 0, channel, 1, channels);
        }
    }
}
