/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", C: "== 1", F: "== 1", KH: "KH != 3 or KW != 3"}
pack: {W: "G,F,C,KH,KW -> G/4,F,C,KH/4,KW,G%4,KH%4"}
epilogue: row
strided: [X, Y]
scratch: "16*((KH+3)//4)*max((min(max(OH, OW), 64)+3)*max(strides_0, strides_1)
  + (max(KH, KW)-1)*max(dilations_0, dilations_1) + 1, min(104, min(OH, OW)*((min(max(OH, OW), 64)+3)*max(strides_0, strides_1)
  + (max(KH, KW)-1)*max(dilations_0, dilations_1) + 1)))"
# At most 16 pixels of a line and 16 channels at a time: columns of four channels, or byte by byte; products of four pixels by
# a column, but for filters of three columns, which have code of their own; results.
cycles:
  columns: N*OH * (BLOCKS := fours(KH)) * (WIDTH := OW*strides_1 + sixteens(OW)*KW*dilations_1) * whole_fours(G)
  few_columns: N*OH * BLOCKS * WIDTH * left_of_fours(G)
  taps: N*OH * fours(OW) * G * BLOCKS * KW * (GENERAL := unless(one(BLOCKS) * one(whole_twos(KW)) * ragged_twos(KW)))
  dots: N*OH * fours(OW) * G * BLOCKS * GENERAL
  blocks: N*OH * sixteens(OW) * fours(G) * BLOCKS
  panels: N*OH * sixteens(OW) * sixteens(G)
  results: N*OH*OW * G
  behind: N*OH*OW * G * FUSED
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* At most 16 pixels of a line at a time. Four channels of the lines they see are turned into columns first;
 * what is outside the image is filled in there. */
static void any(const T *X, const int8_t *W, const int32_t *B, void *Y, int start, int G, int KH, int KW,
                const struct tw_axis *across, const struct tw_axis *along, int zero, uint32_t *columns,
                const struct Epilogue *epilogue) {
    const uint32_t outside = (uint32_t)(zero & 0xFF) * 0x01010101u;
    const int blocks = (KH + 3) / 4;
    int32_t panel[16], out[16 * 16];
    struct tw_four_rows rows;
    struct tw_column_dots dots = {
        .columns = KW, .blocks = blocks, .stride = along->stride, .dilation = along->dilation};
    for (int line = 0; line < across->outputs; line++) {
        const int ih = line * across->stride - across->pad;
        for (int ow = 0; ow < along->outputs; ow += 16) {
            const int pixels = tw_min(16, along->outputs - ow), iw = ow * along->stride - along->pad;
            dots.pixels = (pixels + 3) & ~3;
            dots.pitch = (dots.pixels - 1) * along->stride + (KW - 1) * along->dilation + 1;
            const int begin = tw_min(tw_max(-iw, 0), dots.pitch);
            const int end = tw_max(tw_min(along->inputs - iw, dots.pitch), begin);
            for (int g = 0; g < G; g += 16) {
                const int count = tw_min(16, G - g);
                const int32_t *bias = tw_bias_s32(B, g, count, panel);
                for (int j = 0; j < count; j += 4) {
                    const int channels = tw_min(4, count - j);
                    const uint32_t *w = (const uint32_t *)(const void *)(W + (g + j) * blocks * KW * 4);
                    for (int block = 0; block < blocks; block++) {
                        uint32_t *to = columns + block * 4 * dots.pitch;
                        if (blocks > 1 || g + j == 0) { /* else all is there from the channels before */
                            for (int row = 0; row < 4; row++) {
                                const int h = ih + (block * 4 + row) * across->dilation;
                                const int inside = block * 4 + row < KH && h >= 0 && h < across->inputs;
                                const T *x = X + h * across->in_step + (iw + begin) * along->in_step;
                                rows.stride[row] = inside ? along->in_step : 0;
                                rows.x[row] = inside ? (const char *)x : (const char *)&outside;
                            }
                            tw_outside_columns(4, begin, end, outside, to, dots.pitch);
                        }
                        if (channels == 4)
                            tw_columns(&rows, g + j, KH - block * 4 >= 4, begin, end, to, dots.pitch);
                        else
                            tw_few_columns(&rows, g + j, channels, begin, end, to, dots.pitch, 1);
                    }
                    TW_FOR_BYTES(X, tw_column_dots)(&dots, channels, w, bias + j, columns, out + j);
                }
                STORE(epilogue, Y, out, start + line * across->out_step + ow * along->out_step + g, along->out_step, g,
                      pixels, count);
            }
        }
    }
}

static void depthwise_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int OH, int OW, int KH,
                         int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1, int Y_s2,
                         int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0, int dilations_1,
                         int x_zero_point, void *scratch, const struct Epilogue *epilogue) {
    const struct tw_axis down = {OH, X_n1, X_s1, Y_s1, strides_0, pads_0, dilations_0};
    const struct tw_axis right = {OW, X_n2, X_s2, Y_s2, strides_1, pads_1, dilations_1};
    for (int n = 0; n < N; n++, X += X_s0)
        any(X, W, B, Y, n * Y_s0, G, KH, KW, &down, &right, x_zero_point, scratch, epilogue);
}
