/* Products of floats with all 32 registers of the FPU.
 *
 * Weights of four filters lie side by side. Four pixels and four filters have 16 sums; two inputs of each pixel and eight
 * weights come by five instructions for 32 products. */
#ifndef TILEWRIGHT_FLOATS_H
#define TILEWRIGHT_FLOATS_H

#include "tilewright_kernel.h"

#if TW_ARM_DSP && (__ARM_FP & 4) && !defined(__SOFTFP__)

/* s0 to s15 sums, s16 to s23 two inputs of each pixel, s24 to s31 weights of both. */
#define TW_FLOATS_PIXEL(a, b, c, d, x, w0, w1, w2, w3)                                                                 \
    "vfma.f32 " a ", " x ", " w0 "\nvfma.f32 " b ", " x ", " w1 "\n"                                                   \
    "vfma.f32 " c ", " x ", " w2 "\nvfma.f32 " d ", " x ", " w3 "\n"
#define TW_FLOATS_INPUT(x0, x1, x2, x3, w0, w1, w2, w3)                                                                \
    TW_FLOATS_PIXEL("s0", "s1", "s2", "s3", x0, w0, w1, w2, w3)                                                        \
    TW_FLOATS_PIXEL("s4", "s5", "s6", "s7", x1, w0, w1, w2, w3)                                                        \
    TW_FLOATS_PIXEL("s8", "s9", "s10", "s11", x2, w0, w1, w2, w3)                                                      \
    TW_FLOATS_PIXEL("s12", "s13", "s14", "s15", x3, w0, w1, w2, w3)
#define TW_FLOATS_TWO                                                                                                  \
    "vldmia r2!, {s24-s31}\n"                                                                                          \
    "vldmia r0!, {s16-s17}\n"                                                                                          \
    "vldmia r4!, {s18-s19}\n"                                                                                          \
    "vldmia r5!, {s20-s21}\n"                                                                                          \
    "vldmia r6!, {s22-s23}\n" TW_FLOATS_INPUT("s16", "s18", "s20", "s22", "s24", "s25", "s26", "s27")                  \
        TW_FLOATS_INPUT("s17", "s19", "s21", "s23", "s28", "s29", "s30", "s31")

/* sums[pixel * 4 + filter] += x[pixel] . w[filter] for four pixels that are x_pixel bytes apart. */
TW_ARM_TEXT void tw_floats_4(TW_ARM_UNUSED const float *x, TW_ARM_UNUSED ptrdiff_t x_pixel,
                             TW_ARM_UNUSED const float *w, TW_ARM_UNUSED int length, TW_ARM_UNUSED float *sums) {
    __asm__("push {r4-r7, lr}\n"
            "vpush {s16-s31}\n"
            "ldr r12, [sp, #84]\n"
            "vldm r12, {s0-s15}\n"
            "add r4, r0, r1\n"
            "add r5, r4, r1\n"
            "add r6, r5, r1\n"
            "lsrs r7, r3, #2\n"
            "beq 2f\n"
            "1:\n" TW_FLOATS_TWO TW_FLOATS_TWO "subs r7, r7, #1\n"
            "bne 1b\n"
            "2: tst r3, #2\n"
            "beq 3f\n" TW_FLOATS_TWO "3: tst r3, #1\n"
            "beq 4f\n"
            "vldmia r2!, {s24-s27}\n"
            "vldr s16, [r0]\n"
            "vldr s18, [r4]\n"
            "vldr s20, [r5]\n"
            "vldr s22, [r6]\n" TW_FLOATS_INPUT("s16", "s18", "s20", "s22", "s24", "s25", "s26",
                                               "s27") "4: vstm r12, {s0-s15}\n"
                                                      "vpop {s16-s31}\n"
                                                      "pop {r4-r7, pc}\n");
}

/* The same for one pixel, s0 to s3 sums, s4 to s7 inputs, s16 to s31 weights. */
TW_ARM_TEXT void tw_floats_1(TW_ARM_UNUSED const float *x, TW_ARM_UNUSED const float *w, TW_ARM_UNUSED int length,
                             TW_ARM_UNUSED float *sums) {
    __asm__("vpush {s16-s31}\n"
            "vldm r3, {s0-s3}\n"
            "lsrs r12, r2, #2\n"
            "beq 2f\n"
            "1: vldmia r0!, {s4-s7}\n"
            "vldmia r1!, {s16-s31}\n"
            "subs r12, r12, #1\n" TW_FLOATS_PIXEL("s0", "s1", "s2", "s3", "s4", "s16", "s17", "s18", "s19")
                TW_FLOATS_PIXEL("s0", "s1", "s2", "s3", "s5", "s20", "s21", "s22", "s23")
                    TW_FLOATS_PIXEL("s0", "s1", "s2", "s3", "s6", "s24", "s25", "s26", "s27") TW_FLOATS_PIXEL(
                        "s0", "s1", "s2", "s3", "s7", "s28", "s29", "s30",
                        "s31") "bne 1b\n"
                               "2: ands r2, r2, #3\n"
                               "beq 4f\n"
                               "3: vldmia r0!, {s4}\n"
                               "vldmia r1!, {s16-s19}\n"
                               "subs r2, r2, #1\n" TW_FLOATS_PIXEL("s0", "s1", "s2", "s3", "s4", "s16", "s17", "s18",
                                                                   "s19") "bne 3b\n"
                                                                          "4: vstm r3, {s0-s3}\n"
                                                                          "vpop {s16-s31}\n"
                                                                          "bx lr\n");
}

/* sums[channel] += x[tap][channel] * w[tap][channel] of eight channels; distances are in bytes, those of weights 32. */
TW_ARM_TEXT void tw_floats_depthwise(TW_ARM_UNUSED const float *x, TW_ARM_UNUSED const float *w, TW_ARM_UNUSED int taps,
                                     TW_ARM_UNUSED ptrdiff_t x_tap, TW_ARM_UNUSED float *sums) {
    __asm__("ldr r12, [sp]\n"
            "vpush {s16-s23}\n"
            "vldm r12, {s0-s7}\n"
            "1: vldm r0, {s8-s15}\n"
            "vldmia r1!, {s16-s23}\n"
            "add r0, r0, r3\n"
            "subs r2, r2, #1\n"
            "vfma.f32 s0, s8, s16\nvfma.f32 s1, s9, s17\nvfma.f32 s2, s10, s18\nvfma.f32 s3, s11, s19\n"
            "vfma.f32 s4, s12, s20\nvfma.f32 s5, s13, s21\nvfma.f32 s6, s14, s22\nvfma.f32 s7, s15, s23\n"
            "bne 1b\n"
            "vstm r12, {s0-s7}\n"
            "vpop {s16-s23}\n"
            "bx lr\n");
}

#else

TW_APART void tw_floats_1(const float *x, const float *w, int length, float *sums) {
    for (int k = 0; k < length; k++)
        for (int j = 0; j < 4; j++)
            sums[j] = TW_FMA(x[k], w[k * 4 + j], sums[j]);
}
TW_APART void tw_floats_4(const float *x, ptrdiff_t x_pixel, const float *w, int length, float *sums) {
    for (int i = 0; i < 4; i++)
        tw_floats_1(x + i * (x_pixel / (ptrdiff_t)sizeof *x), w, length, sums + i * 4);
}
TW_APART void tw_floats_depthwise(const float *x, const float *w, int taps, ptrdiff_t x_tap, float *sums) {
    for (int tap = 0; tap < taps; tap++, x += x_tap / (ptrdiff_t)sizeof *x, w += 8)
        for (int j = 0; j < 8; j++)
            sums[j] = TW_FMA(x[j], w[j], sums[j]);
}

#endif

/* A block of at most 4 pixels and 16 filters, whose weights are w_block apart for every four: out[pixel * 16 + filter].
 * Returns how many pixels were done. */
TW_APART int tw_floats_block(int pixels, int channels, const struct tw_taps *t, const float *x, const float *w,
                             ptrdiff_t w_block, const float *bias, float *out) {
    const int many = pixels >= 4 ? 4 : 1;
    for (int j = 0; j < channels; j += 4, w += w_block) {
        float sums[16];
        for (int i = 0; i < many; i++)
            memcpy(sums + i * 4, bias + j, 4 * sizeof *sums);
        for (int row = 0; row < t->rows; row++) {
            for (int col = 0; col < t->cols; col++) {
                const float *a = x + row * t->x_row + col * t->x_col, *b = w + row * t->w_row + col * t->w_col;
                if (many == 4)
                    tw_floats_4(a, t->x_pixel * (ptrdiff_t)sizeof *x, b, t->len, sums);
                else
                    tw_floats_1(a, b, t->len, sums);
            }
        }
        for (int i = 0; i < many; i++)
            memcpy(out + i * 16 + j, sums + i * 4, 4 * sizeof *sums);
    }
    return many;
}

#endif
