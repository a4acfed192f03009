/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1", C: "== 1", F: "== 1", G: "G % 2 == 0 and G >= 16", X_s1: "% 2 == 0", X_s2: "% 2 == 0"}
pack: {W: "G,F,C,KH,KW -> F,C,KH,KW,G"}
epilogue: row
strided: [X, Y]
# Sixteen channels of a pixel at a time, in pairs, the last ones together with some of those before; of filters at edges only
# what is inside the image.
cycles:
  taps: (BLOCKS := N * OH * OW * sixteens(G)) * KH * KW
  blocks: BLOCKS
  pixels: N * OH * OW
  results: N * OH * OW * G * some(STEPS)
  behind: N * OH * OW * G * FUSED
  call: 1
--- */
#include "tilewright_streams.h"

/* Stream 0 reads the inputs of a pixel where they are: pairs of channels, columns and rows of the filter; stream 1 their
 * weights. Sums begin with the biases. */
static void depthwise_pairs_f32(const float *X, const float *W, const float *B, float *Y, int N, int G, int OH, int OW,
                                int KH, int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1,
                                int Y_s2, int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0,
                                int dilations_1, const struct Epilogue *epilogue) {
    const int column = X_s2 * dilations_1 * 4, row = X_s1 * dilations_0 * 4;
    double zeros[8] = {0}, out[8]; /* pairs of floats */
    const int aligned = ((uintptr_t)Y | (uintptr_t)(Y_s0 * 4) | (uintptr_t)(Y_s1 * 4) | (uintptr_t)(Y_s2 * 4)) % 8 == 0;
    TW_STREAM_TIMES(0, 1);
    TW_STREAM_TIMES(1, 1);
    TW_STREAM_LOOP(0, 0, 8, 8);
    TW_STREAM_LOOP(1, 0, 8, 8);
    for (int n = 0; n < N; n++)
        for (int oh = 0; oh < OH; oh++) {
            const int ih = oh * strides_0 - pads_0;
            const struct tw_span kh = tw_inside(ih, X_n1, KH, dilations_0);
            for (int ow = 0; ow < OW; ow++) {
                const int iw = ow * strides_1 - pads_1;
                const struct tw_span kw = tw_inside(iw, X_n2, KW, dilations_1);
                const int rows = kh.end - kh.begin, columns = kw.end - kw.begin, taps = rows * columns;
                const float *const x =
                    X + n * X_s0 + (ih + kh.begin * dilations_0) * X_s1 + (iw + kw.begin * dilations_1) * X_s2;
                const float *const w = W + (kh.begin * KW + kw.begin) * G;
                if (taps > 0) {
                    TW_STREAM_LOOP(0, 1, columns, column - 56);
                    TW_STREAM_LOOP(0, 2, rows, row - (columns - 1) * column - 56);
                    TW_STREAM_LOOP(1, 1, columns, G * 4 - 56);
                    TW_STREAM_LOOP(1, 2, rows, (KW - columns + 1) * G * 4 - 56);
                }
                for (int next = 0; next < G; next += 16) {
                    const int g = tw_min(next, G - 16), left = next - g, at = n * Y_s0 + oh * Y_s1 + ow * Y_s2 + g;
                    const int direct = TW_PLAIN(Y, float) && aligned;
                    if (taps > 0) {
                        TW_STREAM_READ(0, 3, x + g);
                        TW_STREAM_READ(1, 3, w + g);
                    }
                    __asm__ volatile(TW_SUMS_AT("fld", "8", "%[bias]") TW_STREAMS_ON
                                     "bltz %[more], 1f\n" TW_FREP_8("%[more]")
                                         TW_EIGHT(TW_VFMAC_S) "1:\n" TW_STREAMS_OFF TW_SUMS_AT("fsd", "8", "%[out]")
                                     :
                                     : [more] "r"(taps - 1), [bias] "r"(B ? (const void *)(B + g) : zeros),
                                       [out] "r"(direct ? (void *)((float *)(void *)Y + at) : out)
                                     : TW_EIGHT_SUMS, TW_STREAM_REGISTERS, "memory");
                    if (!direct)
                        STORE(epilogue, Y, (const float *)(const void *)out + left, at + left, 0, g + left, 1,
                              16 - left);
                }
            }
        }
}
