/* ---
op: Conv
types: {X: float32, W: float32, B: float32, Y: float32}
when: {channels_last: "== 1", C: "% 2 == 0", X_s1: "% 2 == 0", X_s2: "% 2 == 0"}
pack: {W: "G,F,C,KH,KW -> G,F/8,KH,KW,C/2,F%8,C%2"}
epilogue: row
strided: [X, Y]
# Eight channels of a pixel at a time, in pairs of inputs; of filters at edges only what is inside the image.
cycles:
  pairs: (BLOCKS := N * OH * OW * G * eights(F)) * twos(C)
    * max(KH - beyond(X_o1, strides_0) / max(dilations_0 * OH_all, dilations_0), some(KH)) * max(KW - beyond(X_o2, strides_1) / max(dilations_1 * OW_all, dilations_1), some(KW))
  blocks: BLOCKS
  pixels: N * OH * OW * G
  edges: N * OH * OW * G * some(X_o1 + X_o2)
  results: N * OH * OW * G * F * some(STEPS + left_of_eights(F))
  behind: N * OH * OW * G * F * FUSED
  call: 1
--- */
#include "tilewright_floats.h"

/* Stream 0 reads the inputs of a pixel where they are: pairs of channels, columns and rows of the filter. Stream 1 reads as
 * many weights of eight channels, side by side. */
static void conv2d_pairs_f32(const float *X, const float *W, const float *B, float *Y, int N, int G, int F, int OH,
                             int OW, int C, int KH, int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0,
                             int Y_s1, int Y_s2, int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0,
                             int dilations_1, const struct Epilogue *epilogue) {
    const int blocks = (F + 7) / 8, block_size = KH * KW * C * 8;
    const int column = X_s2 * dilations_1 * 4, row = X_s1 * dilations_0 * 4, inner = (C - 2) * 4;
    const int plain = TW_PLAIN(Y, float) && F % 8 == 0, most = plain ? F : TW_FLOAT_COLUMNS;
    float out[TW_FLOAT_COLUMNS], panel[TW_FLOAT_COLUMNS];
    int set_rows = 0, set_columns = 0, set_turns = 0, pairs = 0; /* of the streams, which most pixels have in common */
    TW_STREAM_TIMES(0, 8);
    TW_STREAM_TIMES(1, 1);
    TW_STREAM_LOOP(0, 0, C / 2, 8);
    for (int n = 0; n < N; n++)
        for (int oh = 0; oh < OH; oh++) {
            const int ih = oh * strides_0 - pads_0;
            const struct tw_span kh = tw_inside(ih, X_n1, KH, dilations_0);
            for (int ow = 0; ow < OW; ow++) {
                const int iw = ow * strides_1 - pads_1;
                const struct tw_span kw = tw_inside(iw, X_n2, KW, dilations_1);
                const int rows = kh.end - kh.begin, columns = kw.end - kw.begin;
                const float *const x =
                    X + n * X_s0 + (ih + kh.begin * dilations_0) * X_s1 + (iw + kw.begin * dilations_1) * X_s2;
                const float *const w = W + (kh.begin * KW + kw.begin) * C * 8;
                for (int g = 0; g < G; g++)
                    for (int f = 0; f < F; f += most) {
                        const int count = tw_min(most, F - f), turns = (count + 7) / 8, channel = g * F + f;
                        const int at = n * Y_s0 + oh * Y_s1 + ow * Y_s2 + channel;
                        const float *const bias = tw_float_biases(B, channel, count, panel);
                        if (rows != set_rows || columns != set_columns || turns != set_turns) {
                            const int run = columns * C * 4, step = row - (columns - 1) * column - inner;
                            set_rows = rows, set_columns = columns, set_turns = turns, pairs = rows * columns * C / 2;
                            TW_STREAM_LOOP(0, 1, columns, column - inner);
                            TW_STREAM_LOOP(0, 2, rows, step);
                            TW_STREAM_LOOP(0, 3, turns, step - rows * row);
                            TW_STREAM_LOOP(1, 0, run, 8);
                            TW_STREAM_LOOP(1, 1, rows, (KW - columns) * C * 32 + 8);
                            TW_STREAM_LOOP(1, 2, turns, (block_size - (rows - 1) * KW * C * 8 - run * 2 + 2) * 4);
                        }
                        if (pairs > 0) {
                            TW_STREAM_READ(0, 4, x + g * C);
                            TW_STREAM_READ(1, 3, w + (g * blocks + f / 8) * block_size);
                        }
                        tw_float_dots(1, turns, pairs, bias, B ? 32 : 0, plain ? (float *)(void *)Y + at : out);
                        if (!plain)
                            TW_STORE_ROW(epilogue, Y, out, at, channel, count);
                    }
            }
        }
}
