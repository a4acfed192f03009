/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", C: "== 1", F: "== 1", KH: "<= 8", KW: "<= 8"}
pack: {W: "G,F,C,KH,KW -> G/16,F,C,KH,KW,G%16"}
epilogue: row
# Sixteen channels at a time.
cycles:
  taps: N * OH * OW * sixteens(G) * KH * KW
  results: N * OH * OW * G
  behind: N * OH * OW * G * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void depthwise_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int OH, int OW, int KH,
                         int KW, int X_n1, int X_n2, int strides_0, int strides_1, int pads_0, int pads_1,
                         int dilations_0, int dilations_1, int x_zero_point, const struct Epilogue *epilogue) {
    T outside[16];
    int32_t panel[16], out[4 * 16];
    struct tw_tap_list taps;
    const struct tw_patch image = TW_PATCH(1, G);
    const struct tw_span interior = tw_interior(OW, X_n2, KW, strides_1, dilations_1, pads_1);
    const ptrdiff_t step = (ptrdiff_t)strides_1 * G;
    memset(outside, x_zero_point, sizeof outside);
    for (int line = 0; line < N * OH; line++) {
        ptrdiff_t offset = 0;
        for (int ow = 0, pixels; ow < OW; ow += pixels, offset += pixels * step) {
            const int inside = ow >= interior.begin && ow < interior.end;
            pixels = inside ? tw_min(4, interior.end - ow) : 1;
            /* Pixels inside follow each other; the taps of the others are listed one by one. */
            if (!inside || ow == interior.begin) {
                offset = 0;
                tw_list_taps(&taps, &image, X + (ptrdiff_t)(line / OH) * X_n1 * X_n2 * G, line % OH, ow, outside);
            }
            for (int g = 0; g < G; g += 16) {
                const int count = tw_min(16, G - g);
                const int32_t *bias = tw_bias_s32(B, g, count, panel);
                const int8_t *w = W + (ptrdiff_t)g * KH * KW;
                for (int i = 0; i < pixels; i++)
                    TW_FOR_BYTES(X, tw_depthwise)(count, &taps, offset + i * step + g, w, bias, out + i * 16);
                STORE(epilogue, Y, out, ((ptrdiff_t)line * OW + ow) * G + g, G, g, pixels, count);
            }
        }
    }
}
