/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", C: "== 1", F: "== 1", G: "G % 4 == 0", X_s2: "X_s2 % 4 == 0", X_s1: "X_s1 % 4 == 0", X_s0: "X_s0 % 4 == 0"}
pack: {W: "G,F,C,KH,KW -> G/4,F,C,KH/4,KW,G%4,KH%4"}
epilogue: row
strided: [X, Y]
scratch: "16*((KH+3)//4)*((min(OW, 16)-1)*strides_1 + (KW-1)*dilations_1 + 1)"
# Four channels of at most 16 pixels of a line, or fewer where that leaves nothing to do for some cores. Four rows of the image
# become a column of each channel; then products of columns.
cycles:
  columns: (RUNS := steps((LINES := N * OH * fours(G)) * steps(OW, (SPAN := steps(OW, max(sixteens(OW), min(OW, PARTS // (LINES + none(LINES))))))), PARTS)) * fours(KH) * ((SPAN - some(SPAN)) * strides_1 + KW * dilations_1)
  taps: RUNS * SPAN * fours(KH) * KW
  pixels: RUNS * SPAN
  channels: RUNS * fours(KH) * KW
  runs: RUNS
  behind: RUNS * SPAN * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"
#include "tilewright_runs.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

TW_INLINE int32_t dot(int32_t sum, uint32_t a, uint32_t b) {
    return ((T)-1) < 0 ? tw_pool_sdot_s8(sum, a, b) : tw_pool_sdot_u8(sum, a, b);
}

/* Columns of `count` pixels, `next` apart, whose four rows begin at `x`; of rows outside the image all words are the same. */
TW_INLINE uint32_t *turned(const char *const x[4], const int next[4], int count, uint32_t *to) {
    const char *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
    for (; count > 0; count--, x0 += next[0], x1 += next[1], x2 += next[2], x3 += next[3], to += 4) {
        const uint32_t a = *(const uint32_t *)(const void *)x0, b = *(const uint32_t *)(const void *)x1;
        const uint32_t c = *(const uint32_t *)(const void *)x2, d = *(const uint32_t *)(const void *)x3;
        const uint32_t low = tw_pool_shuffle(a, b, 0x05010400u), high = tw_pool_shuffle(a, b, 0x07030602u);
        const uint32_t low2 = tw_pool_shuffle(c, d, 0x05010400u), high2 = tw_pool_shuffle(c, d, 0x07030602u);
        to[0] = tw_pool_shuffle(low, low2, 0x05040100u);
        to[1] = tw_pool_shuffle(low, low2, 0x07060302u);
        to[2] = tw_pool_shuffle(high, high2, 0x05040100u);
        to[3] = tw_pool_shuffle(high, high2, 0x07060302u);
    }
    return to;
}

static void depthwise_pool_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int OH, int OW,
                              int KH, int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1,
                              int Y_s2, int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0,
                              int dilations_1, int x_zero_point, int PART, int PARTS, void *scratch,
                              const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const uint32_t outside = (uint32_t)(x_zero_point & 0xFF) * 0x01010101u;
    const int fours = G >> 2, lines = N * OH * fours, deep = (KH + 3) >> 2;
    const int cut = tw_max((OW + 15) >> 4, tw_min(OW, PARTS / lines)), most = (OW - 1) / cut + 1;
    const int pieces = (OW - 1) / most + 1;
    uint32_t *const columns = scratch;
    for (int part = PART; part < lines * pieces; part += PARTS) {
        const int g = part % fours * 4, rest = part / fours, from = rest % pieces * most, line = rest / pieces;
        const int oh = line % OH, n = line / OH, pixels = tw_min(OW - from, most);
        const int ih = oh * strides_0 - pads_0, iw = from * strides_1 - pads_1;
        const int width = (pixels - 1) * strides_1 + (KW - 1) * dilations_1 + 1;
        const int begin = tw_min(tw_max(-iw, 0), width), end = tw_max(tw_min(X_n2 - iw, width), begin);
        const T *const image = X + n * X_s0 + (iw + begin) * X_s2 + g;
        uint32_t *to = columns;
        for (int block = 0; block < deep; block++) {
            const char *x[4];
            int next[4];
            for (int i = 0; i < 4; i++) {
                const int row = ih + (4 * block + i) * dilations_0;
                const int inside = 4 * block + i < KH && row >= 0 && row < X_n1;
                x[i] = inside ? (const char *)(image + row * X_s1) : (const char *)&outside;
                next[i] = inside ? X_s2 : 0;
            }
            for (int i = 4 * begin; i > 0; i--)
                *to++ = outside;
            to = turned(x, next, end - begin, to);
            for (int i = 4 * (width - end); i > 0; i--)
                *to++ = outside;
        }
        const uint32_t *w = (const uint32_t *)(const void *)(W + g * deep * KW * 4);
        for (int i = 0; i < 4; i++, w++) {
            const int32_t bias = B ? B[g + i] : 0;
            const uint32_t *t = columns + i;
            int at = n * Y_s0 + oh * Y_s1 + from * Y_s2 + g + i;
            if (deep == 1 && KW == 3) {
                const uint32_t w0 = w[0], w1 = w[4], w2 = w[8];
                for (int left = pixels; left > 0; left--, t += 4 * strides_1, at += Y_s2) {
                    const int32_t sum = dot(dot(bias, t[0], w0), t[4 * dilations_1], w1);
                    STORE_1(&e, Y, dot(sum, t[8 * dilations_1], w2), at, g + i);
                }
                continue;
            }
            for (int left = pixels; left > 0; left--, t += 4 * strides_1, at += Y_s2) {
                int32_t sum = bias;
                for (int block = 0; block < deep; block++)
                    for (int kw = 0; kw < KW; kw++)
                        sum = dot(sum, t[4 * (block * width + kw * dilations_1)], w[4 * (block * KW + kw)]);
                STORE_1(&e, Y, sum, at, g + i);
            }
        }
    }
}
