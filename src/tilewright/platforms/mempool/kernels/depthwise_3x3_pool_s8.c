/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", C: "== 1", F: "== 1", KH: "== 3", KW: "== 3", G: "G % 4 == 0", X_s2: "X_s2 % 4 == 0", X_s1: "X_s1 % 4 == 0", X_s0: "X_s0 % 4 == 0"}
pack: {W: "G,F,C,KH,KW -> G/4,F,C,KH/4,KW,G%4,KH%4"}
epilogue: row
strided: [X, Y]
scratch: "16*((KH+3)//4)*((min(OW, 16)-1)*strides_1 + (KW-1)*dilations_1 + 1)"
# Four channels of at most 16 pixels of a line, or fewer where that leaves nothing to do for some cores. Four rows of the image
# become a column of each channel; then products of columns.
cycles:
  columns: (SPANS := steps((LINES := N * OH * fours(G)) * steps(OW, max(SPAN := steps(OW, max(sixteens(OW), min(OW, PARTS // max(LINES, some(KW))), some(KW))), some(KW))), PARTS)) * (DEEP := fours(KH)) * ((SPAN - some(SPAN)) * strides_1 + (KW - some(KW)) * dilations_1 + some(KW))
  pixels: SPANS * SPAN
  behind: unless(SCALES * BYTES) * SPANS * SPAN * FUSED
  spans: SPANS
  call: 1
--- */
#include "tilewright_kernel.h"
#include "tilewright_scale.h"
#include "tilewright_spans.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Loads of a column lie between products of the one before: words of other groups come after five cycles. */
#define DEPTHWISE_LOADS(x)                                                                                             \
    "lw %[x0], 0(%[" x "])\nlw %[x1], 4(%[" x "])\nlw %[x2], 8(%[" x "])\nlw %[x3], 12(%[" x "])\n"
#define DEPTHWISE_DOTS(CODE, w0, w1, w2, w3, l0, l1, l2, l3)                                                           \
    TW_ADD_DOT(CODE, "%[a]", "%[x0]", "%[" w0 "]")                                                                     \
    l0 TW_ADD_DOT(CODE, "%[b]", "%[x1]", "%[" w1 "]") l1 TW_ADD_DOT(CODE, "%[c]", "%[x2]", "%[" w2 "]")                \
        l2 TW_ADD_DOT(CODE, "%[d]", "%[x3]", "%[" w3 "]") l3
#define DEPTHWISE_3X3(CODE)                                                                                            \
    __asm__ volatile(                                                                                                  \
        DEPTHWISE_LOADS("t") DEPTHWISE_DOTS(CODE, "w0", "w1", "w2", "w3", "lw %[x0], 0(%[u])\n",                       \
                                            "lw %[x1], 4(%[u])\n", "lw %[x2], 8(%[u])\n", "lw %[x3], 12(%[u])\n")      \
            DEPTHWISE_DOTS(CODE, "w4", "w5", "w6", "w7", "lw %[x0], 0(%[v])\n", "lw %[x1], 4(%[v])\n",                 \
                           "lw %[x2], 8(%[v])\n", "lw %[x3], 12(%[v])\n")                                              \
                DEPTHWISE_DOTS(CODE, "w8", "w9", "w10", "w11", "", "", "", "")                                         \
        : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [x0] "=&r"(x0), [x1] "=&r"(x1), [x2] "=&r"(x2),          \
          [x3] "=&r"(x3)                                                                                               \
        : [t] "r"(t), [u] "r"(u), [v] "r"(v), [w0] "r"(w0), [w1] "r"(w1), [w2] "r"(w2), [w3] "r"(w3), [w4] "r"(w4),    \
          [w5] "r"(w5), [w6] "r"(w6), [w7] "r"(w7), [w8] "r"(w8), [w9] "r"(w9), [w10] "r"(w10), [w11] "r"(w11)         \
        : "memory")
TW_APART void depthwise_3x3(const struct tw_pool_span *span, const uint32_t *t, const uint32_t *w, const int32_t *bias,
                            void *Y, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const int next = span->next, step = span->step;
    const uint32_t w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3], w4 = w[4], w5 = w[5], w6 = w[6], w7 = w[7];
    const uint32_t w8 = w[8], w9 = w[9], w10 = w[10], w11 = w[11];
    const uint32_t *u = t + span->dilation, *v = u + span->dilation;
    int at = span->at;
#if STORE_SCALES
    const struct tw_pool_scale scale = TW_POOL_SCALE_OF(&e, span->channel);
#endif
    for (int left = span->pixels; left > 0; left--, t += step, u += step, v += step, at += next) {
        int32_t a = bias[0], b = bias[1], c = bias[2], d = bias[3];
        uint32_t x0, x1, x2, x3;
        if (((T)-1) < 0)
            DEPTHWISE_3X3(TW_POOL_S8);
        else
            DEPTHWISE_3X3(TW_POOL_U8);
#if STORE_SCALES
        tw_pool_bytes(&scale, STORE_SIGNED, a, b, c, d, (char *)Y + at);
#else
        STORE_4(&e, Y, a, b, c, d, at, span->channel);
#endif
    }
}

static void depthwise_3x3_pool_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int OH, int OW,
                                  int KH, int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1,
                                  int Y_s2, int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0,
                                  int dilations_1, int x_zero_point, int PART, int PARTS, void *scratch,
                                  const struct Epilogue *epilogue) {
    const struct tw_pool_windows windows = TW_POOL_WINDOWS;
    const struct tw_pool_spans spans = tw_pool_spans(&windows, PARTS);
    const int length = ((KH + 3) >> 2) * KW * 4;
    const int32_t none[4] = {0};
    for (int number = PART; number < spans.count; number += PARTS) {
        const struct tw_pool_span span = tw_pool_span(&windows, &spans, number, X, scratch);
        const uint32_t *const w = (const uint32_t *)(const void *)(W + span.channel * length);
        depthwise_3x3(&span, scratch, w, B ? B + span.channel : none, Y, epilogue);
    }
}
