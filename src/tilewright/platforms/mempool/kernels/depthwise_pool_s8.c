/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", C: "== 1", F: "== 1", KH: "KH > 1 and (KH != 3 or KW != 3)", G: "G % 4 == 0", X_s2: "X_s2 % 4 == 0", X_s1: "X_s1 % 4 == 0", X_s0: "X_s0 % 4 == 0"}
pack: {W: "G,F,C,KH,KW -> G/4,F,C,KH/4,KW,G%4,KH%4"}
epilogue: row
strided: [X, Y]
scratch: "16*((KH+3)//4)*((min(OW, 16)-1)*strides_1 + (KW-1)*dilations_1 + 1)"
# Four channels of at most 16 pixels of a line, or fewer where that leaves nothing to do for some cores. Four rows of the image
# become a column of each channel; then products of columns, which a window of one row would not fill.
cycles:
  columns: (SPANS := steps((LINES := N * OH * fours(G)) * steps(OW, max(SPAN := steps(OW, max(sixteens(OW), min(OW, PARTS // max(LINES, some(KW))), some(KW))), some(KW))), PARTS)) * (DEEP := fours(KH)) * ((SPAN - some(SPAN)) * strides_1 + (KW - some(KW)) * dilations_1 + some(KW))
  taps: SPANS * SPAN * DEEP * KW
  pixels: SPANS * SPAN
  behind: SPANS * SPAN * FUSED
  spans: SPANS
  call: 1
--- */
#include "tilewright_kernel.h"
#include "tilewright_spans.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

TW_INLINE int32_t dot(int32_t sum, uint32_t a, uint32_t b) {
    if (((T)-1) < 0)
        __asm__(TW_ADD_DOT(TW_POOL_S8, "%0", "%1", "%2") : "+r"(sum) : "r"(a), "r"(b));
    else
        __asm__(TW_ADD_DOT(TW_POOL_U8, "%0", "%1", "%2") : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

/* Channels take turns, as a product is there three cycles later. */
TW_APART void products(const struct tw_pool_span *span, const uint32_t *t, const uint32_t *w, const int32_t *bias,
                       void *Y, int KH, int KW, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    int at = span->at;
    for (int left = span->pixels; left > 0; left--, t += span->step, at += span->next) {
        int32_t a = bias[0], b = bias[1], c = bias[2], d = bias[3];
        const uint32_t *y = w;
        for (int block = 0; 4 * block < KH; block++) {
            const uint32_t *x = t + block * span->block;
            for (int kw = 0; kw < KW; kw++, x += span->dilation, y += 4)
                a = dot(a, x[0], y[0]), b = dot(b, x[1], y[1]), c = dot(c, x[2], y[2]), d = dot(d, x[3], y[3]);
        }
        STORE_4(&e, Y, a, b, c, d, at, span->channel);
    }
}
static void depthwise_pool_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int OH, int OW,
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
        products(&span, scratch, w, B ? B + span.channel : none, Y, KH, KW, epilogue);
    }
}
