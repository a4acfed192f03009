/* Products of floats with all 32 registers of the FPU.
 *
 * Weights of four filters lie side by side. Four pixels and four filters have 16 sums; two inputs of each pixel and eight
 * weights come by five instructions for 32 products. */
#ifndef TILEWRIGHT_FLOATS_H
#define TILEWRIGHT_FLOATS_H

#include "tilewright_kernel.h"

/* Sums of some runs of taps: out[pixel * 16 + filter] = from[pixel * from_row + filter] + ... for four filters. Distances are in
 * bytes; behind a run it is x_next and w_next to the next one. */
struct tw_float_runs {
    const float *x, *w;
    int length, runs; /* at least one */
    ptrdiff_t x_pixel, x_next, w_next;
    const float *from;
    ptrdiff_t from_row;
    float *out;
};

/* Taps of eight channels of one pixel: out[channel] = from[channel] + ... Weights of a tap lie side by side. */
struct tw_float_taps {
    const float *x, *w;
    int cols, rows; /* at least one */
    ptrdiff_t x_col, x_next, w_next;
    const float *from;
    float *out;
};

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
    "vldmia r1!, {s24-s31}\n"                                                                                          \
    "vldmia r0!, {s16-s17}\n"                                                                                          \
    "vldmia r8!, {s18-s19}\n"                                                                                          \
    "vldmia r9!, {s20-s21}\n"                                                                                          \
    "vldmia r10!, {s22-s23}\n" TW_FLOATS_INPUT("s16", "s18", "s20", "s22", "s24", "s25", "s26", "s27")                 \
        TW_FLOATS_INPUT("s17", "s19", "s21", "s23", "s28", "s29", "s30", "s31")

/* r0, r8 to r10 pixels, r1 weights, r2 length, r3 runs, r5 and r6 to the next run. */
TW_ARM_TEXT void tw_floats_4(TW_ARM_UNUSED const struct tw_float_runs *job) {
    __asm__("push {r4-r11, lr}\n"
            "vpush {s16-s31}\n"
            "ldm r0, {r0-r7, r11, r12}\n" /* x, w, length, runs, x_pixel, x_next, w_next, from, from_row, out */
            "vldm r7, {s0-s3}\n"
            "add r7, r7, r11\n"
            "vldm r7, {s4-s7}\n"
            "add r7, r7, r11\n"
            "vldm r7, {s8-s11}\n"
            "add r7, r7, r11\n"
            "vldm r7, {s12-s15}\n"
            "add r8, r0, r4\n"
            "add r9, r8, r4\n"
            "add r10, r9, r4\n"
            "5: lsrs r7, r2, #2\n"
            "beq 2f\n"
            "1:\n" TW_FLOATS_TWO TW_FLOATS_TWO "subs r7, r7, #1\n"
            "bne 1b\n"
            "2: tst r2, #2\n"
            "beq 3f\n" TW_FLOATS_TWO "3: tst r2, #1\n"
            "beq 4f\n"
            "vldmia r1!, {s24-s27}\n"
            "vldmia r0!, {s16}\n"
            "vldmia r8!, {s18}\n"
            "vldmia r9!, {s20}\n"
            "vldmia r10!, {s22}\n" TW_FLOATS_INPUT("s16", "s18", "s20", "s22", "s24", "s25", "s26",
                                                   "s27") "4: add r0, r0, r5\n"
                                                          "add r8, r8, r5\n"
                                                          "add r9, r9, r5\n"
                                                          "add r10, r10, r5\n"
                                                          "add r1, r1, r6\n"
                                                          "subs r3, r3, #1\n"
                                                          "bne 5b\n"
                                                          "vstm r12, {s0-s3}\n"
                                                          "add r12, r12, #64\n"
                                                          "vstm r12, {s4-s7}\n"
                                                          "add r12, r12, #64\n"
                                                          "vstm r12, {s8-s11}\n"
                                                          "add r12, r12, #64\n"
                                                          "vstm r12, {s12-s15}\n"
                                                          "vpop {s16-s31}\n"
                                                          "pop {r4-r11, pc}\n");
}

/* The same for one pixel, s0 to s3 sums, s4 to s7 inputs, s16 to s31 weights. */
TW_ARM_TEXT void tw_floats_1(TW_ARM_UNUSED const struct tw_float_runs *job) {
    __asm__("push {r4-r8, lr}\n"
            "vpush {s16-s31}\n"
            "ldm r0, {r0-r7, r8, r12}\n"
            "vldm r7, {s0-s3}\n"
            "5: lsrs r7, r2, #2\n"
            "beq 2f\n"
            "1: vldmia r0!, {s4-s7}\n"
            "vldmia r1!, {s16-s31}\n"
            "subs r7, r7, #1\n" TW_FLOATS_PIXEL("s0", "s1", "s2", "s3", "s4", "s16", "s17", "s18", "s19")
                TW_FLOATS_PIXEL("s0", "s1", "s2", "s3", "s5", "s20", "s21", "s22", "s23")
                    TW_FLOATS_PIXEL("s0", "s1", "s2", "s3", "s6", "s24", "s25", "s26", "s27") TW_FLOATS_PIXEL(
                        "s0", "s1", "s2", "s3", "s7", "s28", "s29", "s30",
                        "s31") "bne 1b\n"
                               "2: ands r7, r2, #3\n"
                               "beq 4f\n"
                               "3: vldmia r0!, {s4}\n"
                               "vldmia r1!, {s16-s19}\n"
                               "subs r7, r7, #1\n" TW_FLOATS_PIXEL("s0", "s1", "s2", "s3", "s4", "s16", "s17", "s18",
                                                                   "s19") "bne 3b\n"
                                                                          "4: add r0, r0, r5\n"
                                                                          "add r1, r1, r6\n"
                                                                          "subs r3, r3, #1\n"
                                                                          "bne 5b\n"
                                                                          "vstm r12, {s0-s3}\n"
                                                                          "vpop {s16-s31}\n"
                                                                          "pop {r4-r8, pc}\n");
}

TW_ARM_TEXT void tw_floats_depthwise(TW_ARM_UNUSED const struct tw_float_taps *job) {
    __asm__("push {r4-r8, lr}\n"
            "vpush {s16-s23}\n"
            "ldm r0, {r0-r8}\n" /* x, w, cols, rows, x_col, x_next, w_next, from, out */
            "vldm r7, {s0-s7}\n"
            "2: mov r7, r2\n"
            "1: vldm r0, {s8-s15}\n"
            "vldmia r1!, {s16-s23}\n"
            "add r0, r0, r4\n"
            "subs r7, r7, #1\n"
            "vfma.f32 s0, s8, s16\nvfma.f32 s1, s9, s17\nvfma.f32 s2, s10, s18\nvfma.f32 s3, s11, s19\n"
            "vfma.f32 s4, s12, s20\nvfma.f32 s5, s13, s21\nvfma.f32 s6, s14, s22\nvfma.f32 s7, s15, s23\n"
            "bne 1b\n"
            "add r0, r0, r5\n"
            "add r1, r1, r6\n"
            "subs r3, r3, #1\n"
            "bne 2b\n"
            "vstm r8, {s0-s7}\n"
            "vpop {s16-s23}\n"
            "pop {r4-r8, pc}\n");
}

#else

#define TW_FLOAT_AT(base, bytes) ((const float *)(const void *)((const char *)(base) + (bytes)))

TW_INLINE void tw_floats_pixels(const int PIXELS, const struct tw_float_runs *job) {
    const ptrdiff_t length = job->length * (ptrdiff_t)sizeof *job->x;
    for (int i = 0; i < PIXELS * 4; i++) {
        float sum = TW_FLOAT_AT(job->from, i / 4 * job->from_row)[i % 4];
        for (int run = 0; run < job->runs; run++) {
            const float *x = TW_FLOAT_AT(job->x, i / 4 * job->x_pixel + run * (length + job->x_next));
            const float *w = TW_FLOAT_AT(job->w, run * (length * 4 + job->w_next));
            for (int k = 0; k < job->length; k++)
                sum = TW_FMA(x[k], w[k * 4 + i % 4], sum);
        }
        job->out[i / 4 * 16 + i % 4] = sum;
    }
}
TW_APART void tw_floats_4(const struct tw_float_runs *job) { tw_floats_pixels(4, job); }
TW_APART void tw_floats_1(const struct tw_float_runs *job) { tw_floats_pixels(1, job); }

TW_APART void tw_floats_depthwise(const struct tw_float_taps *job) {
    for (int j = 0; j < 8; j++) {
        float sum = job->from[j];
        for (int tap = 0; tap < job->rows * job->cols; tap++) {
            const int row = tap / job->cols, col = tap % job->cols;
            const float *x = TW_FLOAT_AT(job->x, tap * job->x_col + row * job->x_next);
            const float *w = TW_FLOAT_AT(job->w, (row * job->cols + col) * 32 + row * job->w_next);
            sum = TW_FMA(x[j], w[j], sum);
        }
        job->out[j] = sum;
    }
}

#endif

/* A block of at most 4 pixels and 16 filters, whose weights are w_block apart for every four: out[pixel * 16 + filter].
 * Returns how many pixels were done. */
TW_APART int tw_floats_block(int pixels, int channels, const struct tw_taps *t, const float *x, const float *w,
                             ptrdiff_t w_block, const float *bias, float *out) {
    const ptrdiff_t size = sizeof *x;
    const int many = pixels >= 4 ? 4 : 1, by_rows = t->cols == 1;
    struct tw_float_runs job = {.length = t->len, .runs = by_rows ? t->rows : t->cols, .x_pixel = t->x_pixel * size};
    job.x_next = ((by_rows ? t->x_row : t->x_col) - t->len) * size;
    job.w_next = ((by_rows ? t->w_row : t->w_col) - t->len * 4) * size;
    for (int j = 0; j < channels; j += 4, w += w_block) {
        const int calls = by_rows ? 1 : t->rows;
        job.from = bias + j;
        job.from_row = 0;
        job.out = out + j;
        for (int i = 0; i < many && (t->rows == 0 || t->cols == 0); i++)
            for (int k = 0; k < 4; k++)
                out[i * 16 + j + k] = bias[j + k];
        for (int row = 0; row < calls && t->rows && t->cols; row++) {
            job.x = x + row * t->x_row;
            job.w = w + row * t->w_row;
            if (many == 4)
                tw_floats_4(&job);
            else
                tw_floats_1(&job);
            job.from = job.out;
            job.from_row = 16 * size;
        }
    }
    return many;
}

#endif
