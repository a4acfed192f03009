/* ---
op: Conv
types: {X: int16, W: int16, B: int32, Y: int32}
when: {channels_last: "== 1", C: "== 1", F: "== 1", KH: "> 1", G: "G % 4 == 0", X_s2: "X_s2 % 2 == 0", X_s1: "X_s1 % 2 == 0", X_s0: "X_s0 % 2 == 0"}
pack: {W: "G,F,C,KH,KW -> G/4,F,C,KH/2,KW,G%4,KH%2"}
epilogue: row
strided: [X, Y]
scratch: "16*((KH+1)//2)*((min(OW, 16)-1)*strides_1 + (KW-1)*dilations_1 + 1)"
# As of bytes (depthwise_pool_s8.c), with columns of two rows.
cycles:
  columns: (SPANS := steps((LINES := N * OH * fours(G)) * steps(OW, max(SPAN := steps(OW, max(sixteens(OW), min(OW, PARTS // max(LINES, some(KW))), some(KW))), some(KW))), PARTS)) * (DEEP := twos(KH)) * ((SPAN - some(SPAN)) * strides_1 + (KW - some(KW)) * dilations_1 + some(KW))
  taps: SPANS * SPAN * DEEP * KW
  pixels: SPANS * SPAN
  behind: SPANS * SPAN * FUSED
  spans: SPANS
  call: some(N)
--- */
#include "tilewright_half_spans.h"
#include "tilewright_kernel.h"

static void depthwise_pool_s16(const int16_t *X, const int16_t *W, const int32_t *B, void *Y, int N, int G, int OH,
                               int OW, int KH, int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0,
                               int Y_s1, int Y_s2, int strides_0, int strides_1, int pads_0, int pads_1,
                               int dilations_0, int dilations_1, int x_zero_point, int PART, int PARTS, void *scratch,
                               const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const struct tw_pool_windows windows = TW_POOL_WINDOWS;
    const struct tw_pool_spans spans = tw_pool_spans(&windows, PARTS);
    const int length = ((KH + 1) >> 1) * KW * 2;
    for (int number = PART; number < spans.count; number += PARTS) {
        const struct tw_pool_span span = tw_pool_half_span(&windows, &spans, number, X, scratch);
        const uint32_t *t = scratch;
        for (int pixel = 0, at = span.at; pixel < span.pixels; pixel++, t += span.step, at += span.next) {
            const uint32_t *y = (const uint32_t *)(const void *)(W + span.channel * length);
            int32_t a = 0, b = 0, c = 0, d = 0;
            if (B)
                a = B[span.channel], b = B[span.channel + 1], c = B[span.channel + 2], d = B[span.channel + 3];
            for (int block = 0; 2 * block < KH; block++) {
                const uint32_t *x = t + block * span.block;
                for (int kw = 0; kw < KW; kw++, x += span.dilation - 4)
                    TW_POOL_HALF_COLUMN(x, y, a, b, c, d);
            }
            STORE_4(&e, Y, a, b, c, d, at, span.channel);
        }
    }
}
