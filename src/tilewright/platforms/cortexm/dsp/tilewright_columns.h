/* Depthwise convolutions of 3x3 taps by SMLAD: the upper two taps of a column are a pair, the lowest one stands alone.
 *
 * A column of four channels is eight words: pair and rest of each. Each column is used for all outputs that see it before
 * the next one is loaded, so that there are three sums at a time, and weights stay in registers. */
#ifndef TILEWRIGHT_COLUMNS_H
#define TILEWRIGHT_COLUMNS_H

#include "tilewright_kernel.h"

/* Weights of a channel: the upper two of each column, the lowest of the first two, the lowest of the last; its bias. */
struct tw_column_weights {
    uint32_t upper[3], lower[2];
    int32_t bias;
};

/* out[i * 16] of a channel for i < groups * 3 outputs of neighbouring columns, or groups * 2 of every other column. Results
 * of columns that are not there are arbitrary. */
struct tw_columns {
    const uint32_t *x;
    int32_t *out;
    int groups; /* at least one */
    const struct tw_column_weights *w;
};

#if TW_ARM_DSP

/* r0 columns, r1 out, r2 groups, r4 to r6 and r7, r8 weights, r9 bias, r10 to r12 sums, r3 and lr a column. */
#define TW_COLUMN_BEGIN                                                                                                \
    "push {r4-r11, lr}\n"                                                                                              \
    "ldm r0, {r0-r3}\n"                                                                                                \
    "ldm r3, {r4-r9}\n"
#define TW_COLUMN_LOAD "ldrd r3, lr, [r0], #32\n"
#define TW_COLUMN_FIRST(sum)                                                                                           \
    "smlad " sum ", r3, r4, r9\n"                                                                                      \
    "smlabb " sum ", lr, r7, " sum "\n"
#define TW_COLUMN_SECOND(sum)                                                                                          \
    "smlad " sum ", r3, r5, " sum "\n"                                                                                 \
    "smlabt " sum ", lr, r7, " sum "\n"
#define TW_COLUMN_LAST(sum)                                                                                            \
    "smlad " sum ", r3, r6, " sum "\n"                                                                                 \
    "smlabb " sum ", lr, r8, " sum "\n"                                                                                \
    "str " sum ", [r1], #64\n"

TW_ARM_TEXT void tw_columns_next(TW_ARM_UNUSED const struct tw_columns *job) {
    __asm__(TW_COLUMN_BEGIN TW_COLUMN_LOAD TW_COLUMN_FIRST("r10") TW_COLUMN_LOAD TW_COLUMN_SECOND("r10")
                TW_COLUMN_FIRST("r11") "1:\n" TW_COLUMN_LOAD TW_COLUMN_LAST("r10") TW_COLUMN_SECOND("r11")
                    TW_COLUMN_FIRST("r12") TW_COLUMN_LOAD TW_COLUMN_LAST("r11") TW_COLUMN_SECOND("r12")
                        TW_COLUMN_FIRST("r10") TW_COLUMN_LOAD TW_COLUMN_LAST("r12") TW_COLUMN_SECOND("r10")
                            TW_COLUMN_FIRST("r11") "subs r2, r2, #1\n"
                                                   "bne 1b\n"
                                                   "pop {r4-r11, pc}\n");
}

TW_ARM_TEXT void tw_columns_every_other(TW_ARM_UNUSED const struct tw_columns *job) {
    __asm__(TW_COLUMN_BEGIN TW_COLUMN_LOAD TW_COLUMN_FIRST("r10") "1:\n" TW_COLUMN_LOAD TW_COLUMN_SECOND("r10")
                TW_COLUMN_LOAD TW_COLUMN_LAST("r10") TW_COLUMN_FIRST("r11") TW_COLUMN_LOAD TW_COLUMN_SECOND("r11")
                    TW_COLUMN_LOAD TW_COLUMN_LAST("r11") TW_COLUMN_FIRST("r10") "subs r2, r2, #1\n"
                                                                                "bne 1b\n"
                                                                                "pop {r4-r11, pc}\n");
}

#else

TW_INLINE void tw_columns_any(const int STRIDE, const struct tw_columns *job) {
    const struct tw_column_weights *w = job->w;
    const uint32_t lower[3] = {w->lower[0], w->lower[0] >> 16, w->lower[1]};
    for (int i = 0; i < job->groups * (4 - STRIDE); i++) {
        int32_t sum = w->bias;
        for (int k = 0; k < 3; k++) {
            const uint32_t *x = job->x + (i * STRIDE + k) * 8;
            sum = tw_low_product(x[1], lower[k], tw_dual(x[0], w->upper[k], sum));
        }
        job->out[i * 16] = sum;
    }
}
TW_APART void tw_columns_next(const struct tw_columns *job) { tw_columns_any(1, job); }
TW_APART void tw_columns_every_other(const struct tw_columns *job) { tw_columns_any(2, job); }

#endif

/* The lower halves of two words, and the upper ones. */
TW_ARM_INLINE uint32_t tw_low_halves(uint32_t low, uint32_t high) {
#if TW_ARM_DSP
    uint32_t both;
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(both) : "r"(low), "r"(high));
    return both;
#else
    return (low & 0xFFFFu) | high << 16;
#endif
}
TW_ARM_INLINE uint32_t tw_high_halves(uint32_t low, uint32_t high) {
#if TW_ARM_DSP
    uint32_t both;
    __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(both) : "r"(high), "r"(low));
    return both;
#else
    return low >> 16 | (high & 0xFFFF0000u);
#endif
}

/* `count` columns of four channels, from three rows of pixels that are `steps` bytes apart. */
#define TW_DEFINE_COLUMNS(NAME, KIND)                                                                                  \
    TW_APART uint32_t *NAME(uint32_t *to, int count, const char *const *rows, const ptrdiff_t *steps) {                \
        const char *a = rows[0], *b = rows[1], *c = rows[2];                                                           \
        const ptrdiff_t a_step = steps[0], b_step = steps[1], c_step = steps[2];                                       \
        for (uint32_t *const end = to + count * 8; to < end; to += 8, a += a_step, b += b_step, c += c_step) {         \
            const uint32_t x = tw_load_word(a), y = tw_load_word(b), z = tw_load_word(c);                              \
            const uint32_t x_even = tw_even_##KIND(x), y_even = tw_even_##KIND(y), z_even = tw_even_##KIND(z);         \
            const uint32_t x_odd = tw_odd_##KIND(x), y_odd = tw_odd_##KIND(y), z_odd = tw_odd_##KIND(z);               \
            to[0] = tw_low_halves(x_even, y_even);                                                                     \
            to[1] = z_even;                                                                                            \
            to[2] = tw_low_halves(x_odd, y_odd);                                                                       \
            to[3] = z_odd;                                                                                             \
            to[4] = tw_high_halves(x_even, y_even);                                                                    \
            to[5] = z_even >> 16;                                                                                      \
            to[6] = tw_high_halves(x_odd, y_odd);                                                                      \
            to[7] = z_odd >> 16;                                                                                       \
        }                                                                                                              \
        return to;                                                                                                     \
    }
TW_DEFINE_COLUMNS(tw_columns_of_s8, s8)
TW_DEFINE_COLUMNS(tw_columns_of_u8, u8)

#endif
