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

/* out[i * 16 + channel] of four channels for i < groups * 3 outputs of neighbouring columns, or groups * 2 of every other
 * column. Results of columns that are not there are arbitrary. */
struct tw_columns {
    const uint32_t *x;
    int32_t *out;
    int groups; /* at least one */
    const struct tw_column_weights *w;
};

#if TW_ARM_DSP

/* r0 columns, r1 out, r2 groups, r4 to r6 and r7, r8 weights, r9 bias, r10 to r12 sums, r3 and lr a column. On the stack:
 * columns, out, groups and weights of the next channel, and how many channels are left. */
#define TW_COLUMN_BEGIN                                                                                                \
    "push {r4-r11, lr}\n"                                                                                              \
    "ldm r0, {r0-r3}\n"                                                                                                \
    "mov r4, #4\n"                                                                                                     \
    "push {r0-r5}\n"                                                                                                   \
    "2: ldm sp, {r0-r3}\n"                                                                                             \
    "add r4, r0, #8\n"                                                                                                 \
    "add r5, r1, #4\n"                                                                                                 \
    "strd r4, r5, [sp]\n"                                                                                              \
    "add r4, r3, #24\n"                                                                                                \
    "str r4, [sp, #12]\n"                                                                                              \
    "ldm r3, {r4-r9}\n"
#define TW_COLUMN_END                                                                                                  \
    "subs r2, r2, #1\n"                                                                                                \
    "bne 1b\n"                                                                                                         \
    "ldr r4, [sp, #16]\n"                                                                                              \
    "subs r4, r4, #1\n"                                                                                                \
    "str r4, [sp, #16]\n"                                                                                              \
    "bne 2b\n"                                                                                                         \
    "add sp, sp, #24\n"                                                                                                \
    "pop {r4-r11, pc}\n"
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
#define TW_COLUMN_NEXT(last, second, first)                                                                            \
    TW_COLUMN_LOAD TW_COLUMN_LAST(last) TW_COLUMN_SECOND(second) TW_COLUMN_FIRST(first)
#define TW_COLUMN_PAIR(last, first)                                                                                    \
    TW_COLUMN_LOAD TW_COLUMN_SECOND(last)                                                                              \
    TW_COLUMN_LOAD TW_COLUMN_LAST(last) TW_COLUMN_FIRST(first)

TW_ARM_TEXT void tw_columns_next(TW_ARM_UNUSED const struct tw_columns *job) {
    __asm__(TW_COLUMN_BEGIN TW_COLUMN_LOAD TW_COLUMN_FIRST("r10") TW_COLUMN_LOAD TW_COLUMN_SECOND("r10")
                TW_COLUMN_FIRST("r11") "1:\n" TW_COLUMN_NEXT("r10", "r11", "r12") TW_COLUMN_NEXT("r11", "r12", "r10")
                    TW_COLUMN_NEXT("r12", "r10", "r11") TW_COLUMN_END);
}
TW_ARM_TEXT void tw_columns_every_other(TW_ARM_UNUSED const struct tw_columns *job) {
    __asm__(TW_COLUMN_BEGIN TW_COLUMN_LOAD TW_COLUMN_FIRST("r10") "1:\n" TW_COLUMN_PAIR("r10", "r11")
                TW_COLUMN_PAIR("r11", "r10") TW_COLUMN_END);
}

/* `count` columns of four channels, from three rows of pixels that are `steps` bytes apart. r0 to, r1 count, r2 to r4 rows,
 * r5 to r7 steps, r8 to r10 a word of each row. */
#define TW_COLUMN_STORE(WIDEN, turn, first, second)                                                                    \
    WIDEN " r11, r8" turn "\n" WIDEN " r12, r9" turn "\n"                                                              \
          "pkhbt lr, r11, r12, lsl #16\n"                                                                              \
          "pkhtb r12, r12, r11, asr #16\n" WIDEN " r11, r10" turn "\n"                                                 \
          "strd lr, r11, [r0, #" first "]\n"                                                                           \
          "lsr r11, r11, #16\n"                                                                                        \
          "strd r12, r11, [r0, #" second "]\n"
#define TW_DEFINE_COLUMNS(NAME, WIDEN)                                                                                 \
    TW_ARM_TEXT uint32_t *NAME(TW_ARM_UNUSED uint32_t *to, TW_ARM_UNUSED int count,                                    \
                               TW_ARM_UNUSED const char *const *rows, TW_ARM_UNUSED const ptrdiff_t *steps) {          \
        __asm__("push {r4-r11, lr}\n"                                                                                  \
                "ldm r3, {r5-r7}\n"                                                                                    \
                "ldm r2, {r2-r4}\n"                                                                                    \
                "1: ldr r8, [r2]\n"                                                                                    \
                "ldr r9, [r3]\n"                                                                                       \
                "ldr r10, [r4]\n"                                                                                      \
                "add r2, r2, r5\n"                                                                                     \
                "add r3, r3, r6\n"                                                                                     \
                "add r4, r4, r7\n" TW_COLUMN_STORE(WIDEN, "", "0", "16")                                               \
                    TW_COLUMN_STORE(WIDEN, ", ror #8", "8", "24") "subs r1, r1, #1\n"                                  \
                                                                  "add r0, r0, #32\n"                                  \
                                                                  "bne 1b\n"                                           \
                                                                  "pop {r4-r11, pc}\n");                               \
    }
TW_DEFINE_COLUMNS(tw_columns_of_s8, "sxtb16")
TW_DEFINE_COLUMNS(tw_columns_of_u8, "uxtb16")

#else

TW_INLINE void tw_columns_any(const int STRIDE, const struct tw_columns *job) {
    for (int i = 0; i < job->groups * (4 - STRIDE) * 4; i++) {
        const struct tw_column_weights *w = job->w + i % 4;
        const uint32_t lower[3] = {w->lower[0], w->lower[0] >> 16, w->lower[1]};
        int32_t sum = w->bias;
        for (int k = 0; k < 3; k++) {
            const uint32_t *x = job->x + (i / 4 * STRIDE + k) * 8 + i % 4 * 2;
            sum = tw_low_product(x[1], lower[k], tw_dual(x[0], w->upper[k], sum));
        }
        job->out[i / 4 * 16 + i % 4] = sum;
    }
}
TW_APART void tw_columns_next(const struct tw_columns *job) { tw_columns_any(1, job); }
TW_APART void tw_columns_every_other(const struct tw_columns *job) { tw_columns_any(2, job); }

#define TW_DEFINE_COLUMNS(NAME, KIND)                                                                                  \
    TW_APART uint32_t *NAME(uint32_t *to, int count, const char *const *rows, const ptrdiff_t *steps) {                \
        for (int i = 0; i < count; i++, to += 8) {                                                                     \
            uint32_t x[3];                                                                                             \
            for (int row = 0; row < 3; row++)                                                                          \
                x[row] = tw_load_word(rows[row] + i * steps[row]);                                                     \
            for (int odd = 0; odd < 2; odd++) {                                                                        \
                const uint32_t a = odd ? tw_odd_##KIND(x[0]) : tw_even_##KIND(x[0]);                                   \
                const uint32_t b = odd ? tw_odd_##KIND(x[1]) : tw_even_##KIND(x[1]);                                   \
                const uint32_t c = odd ? tw_odd_##KIND(x[2]) : tw_even_##KIND(x[2]);                                   \
                to[odd * 2] = (a & 0xFFFFu) | b << 16;                                                                 \
                to[odd * 2 + 1] = c;                                                                                   \
                to[odd * 2 + 4] = a >> 16 | (b & 0xFFFF0000u);                                                         \
                to[odd * 2 + 5] = c >> 16;                                                                             \
            }                                                                                                          \
        }                                                                                                              \
        return to;                                                                                                     \
    }
TW_DEFINE_COLUMNS(tw_columns_of_s8, s8)
TW_DEFINE_COLUMNS(tw_columns_of_u8, u8)

#endif

/* Columns of a part of a line; those outside the image, before and behind the others, hold the zero point. */
struct tw_column_part {
    int count, before, behind;
};
#define TW_DEFINE_COLUMN_PARTS(NAME, COLUMNS, TYPE)                                                                    \
    TW_APART void NAME(const struct tw_patch *s, const TYPE *x, int ih, int iw, const struct tw_column_part *part,     \
                       int again, uint32_t *to) {                                                                      \
        const uint32_t outside = (uint32_t)(uint8_t)s->x_zero_point * 0x01010101u;                                     \
        const char *const nothing = (const char *)&outside, *const none[3] = {nothing, nothing, nothing};              \
        const ptrdiff_t still[3] = {0, 0, 0};                                                                          \
        const int inside = part->count - part->before - part->behind;                                                  \
        if (part->before && !again)                                                                                    \
            (void)COLUMNS(to, part->before, none, still);                                                              \
        if (part->behind && !again)                                                                                    \
            (void)COLUMNS(to + (part->count - part->behind) * 8, part->behind, none, still);                           \
        if (inside > 0) {                                                                                              \
            const char *rows[3];                                                                                       \
            ptrdiff_t steps[3];                                                                                        \
            for (int row = 0; row < 3; row++) {                                                                        \
                const int valid = ih + row >= 0 && ih + row < s->IH;                                                   \
                const ptrdiff_t first = ((ptrdiff_t)(ih + row) * s->IW + iw + part->before) * s->x_col;                \
                rows[row] = valid ? (const char *)(x + first) : nothing;                                               \
                steps[row] = valid ? s->x_col : 0;                                                                     \
            }                                                                                                          \
            (void)COLUMNS(to + part->before * 8, inside, rows, steps);                                                 \
        }                                                                                                              \
    }
TW_DEFINE_COLUMN_PARTS(tw_column_parts_s8, tw_columns_of_s8, int8_t)
TW_DEFINE_COLUMN_PARTS(tw_column_parts_u8, tw_columns_of_u8, uint8_t)

#endif
