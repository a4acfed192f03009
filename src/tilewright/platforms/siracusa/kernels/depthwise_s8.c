/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", C: "== 1", F: "== 1"}
pack: {W: "G,F,C,KH,KW -> G/4,F,C,KH/4,KW,G%4,KH%4"}
epilogue: row
scratch: "16*((KH+3)//4)*(((min(OW, 16)+3)//4*4-1)*strides_1 + (KW-1)*dilations_1 + 1)"
cycles: "N*OH*(OW*G*(24 + ((KH+3)//4)*(2 + 4*strides_1 + KW)) + ((OW+15)//16)*((G+3)//4)*200)"
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* At most 16 pixels of a line at a time. Four channels of the lines they see are turned into columns first; what is
 * outside the image is filled in there. */
static void depthwise_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int OH, int OW, int KH,
                         int KW, int X_n1, int X_n2, int strides_0, int strides_1, int pads_0, int pads_1,
                         int dilations_0, int dilations_1, int x_zero_point, void *scratch,
                         const struct Epilogue *epilogue) {
    const uint32_t outside = (uint32_t)(x_zero_point & 0xFF) * 0x01010101u;
    const int blocks = (KH + 3) / 4, row_bytes = G * X_n2;
    uint32_t *columns = scratch;
    int32_t panel[16], out[16 * 16];
    struct tw_four_rows rows;
    struct tw_column_dots dots = {.columns = KW, .blocks = blocks, .stride = strides_1, .dilation = dilations_1};
    for (int line = 0; line < N * OH; line++) {
        const char *image = (const char *)X + line / OH * X_n1 * row_bytes;
        const int ih = line % OH * strides_0 - pads_0;
        for (int ow = 0; ow < OW; ow += 16) {
            const int pixels = tw_min(16, OW - ow), iw = ow * strides_1 - pads_1;
            dots.pixels = (pixels + 3) & ~3;
            dots.pitch = (dots.pixels - 1) * strides_1 + (KW - 1) * dilations_1 + 1;
            const int begin = tw_min(tw_max(-iw, 0), dots.pitch), end = tw_max(tw_min(X_n2 - iw, dots.pitch), begin);
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
                                const int h = ih + (block * 4 + row) * dilations_0;
                                const int inside = block * 4 + row < KH && h >= 0 && h < X_n1;
                                rows.stride[row] = inside ? G : 0;
                                rows.x[row] =
                                    inside ? image + h * row_bytes + (iw + begin) * G : (const char *)&outside;
                            }
                            tw_outside_columns(4, begin, end, outside, to, dots.pitch);
                        }
                        if (channels == 4)
                            tw_columns(&rows, g + j, KH - block * 4 >= 4, begin, end, to, dots.pitch);
                        else
                            tw_few_columns(&rows, g + j, channels, begin, end, to, dots.pitch);
                    }
                    TW_FOR_BYTES(X, tw_column_dots)(&dots, channels, w, bias + j, columns, out + j);
                }
                STORE(epilogue, Y, out, (line * OW + ow) * G + g, G, g, pixels, count);
            }
        }
    }
}
