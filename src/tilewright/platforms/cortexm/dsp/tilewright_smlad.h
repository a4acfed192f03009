/* Dot products of bytes by SMLAD, which adds two products of 16 bits.
 *
 * Inputs are widened once for all filters, by SXTB16 or UXTB16: of each four bytes a word with the first and third and one
 * with the second and fourth. Three pixels are interleaved word by word, so one LDM brings a pair of each. Weights stay
 * bytes in pairs of filters: four of the one, four of the other. They are widened in the loop, where SXTB16 makes the same
 * pairs. So 24 products take 19 instructions. */
#ifndef TILEWRIGHT_SMLAD_H
#define TILEWRIGHT_SMLAD_H

#include "tilewright_kernel.h"

/* Dot products of 1 or 3 widened pixels with some pairs of filters, up to 8: out[pixel * 16 + filter] = bias[filter] + ... */
struct tw_smlad {
    const uint32_t *x;
    const int8_t *w;
    const int32_t *bias;
    int32_t *out;
    int quads; /* four inputs each, at least one */
    int pairs; /* of filters, at least one */
};

#if TW_ARM_DSP

/* r0 inputs, r1 weights, r2 to r4 a pair of each pixel, r5 and r6 weights of both filters, r7 a pair of them, r8 to r12 and
 * lr the sums. */
#define TW_SMLAD_BOTH(turn)                                                                                            \
    "ldmia r0!, {r2, r3, r4}\n"                                                                                        \
    "sxtb16 r7, r5" turn "\n"                                                                                          \
    "smlad r8, r2, r7, r8\n"                                                                                           \
    "smlad r10, r3, r7, r10\n"                                                                                         \
    "smlad r12, r4, r7, r12\n"                                                                                         \
    "sxtb16 r7, r6" turn "\n"                                                                                          \
    "smlad r9, r2, r7, r9\n"                                                                                           \
    "smlad r11, r3, r7, r11\n"                                                                                         \
    "smlad lr, r4, r7, lr\n"
#define TW_SMLAD_QUAD "ldrd r5, r6, [r1], #8\n" TW_SMLAD_BOTH("") TW_SMLAD_BOTH(", ror #8")

/* On the stack: inputs, their end, where to enter the four quads of the loop so that the rest comes first, bias, out, pairs. */
TW_ARM_TEXT void tw_smlad_3(TW_ARM_UNUSED const struct tw_smlad *job) {
    __asm__("push {r4-r11, lr}\n"
            "ldm r0, {r0-r5}\n" /* x, w, bias, out, quads, pairs */
            "add r6, r4, r4, lsl #1\n"
            "add r8, r0, r6, lsl #3\n" /* 24 bytes for each quad */
            "rsb r9, r4, #0\n"
            "and r9, r9, #3\n"
            "mov r10, #((3f - 2f) / 4)\n"
            "mul r9, r9, r10\n"
            "adr r10, 2f\n"
            "add r9, r9, r10\n"
            "orr r9, r9, #1\n"
            "mov r7, r0\n"
            "mov r10, r2\n"
            "mov r11, r3\n"
            "mov r12, r5\n"
            "push {r7, r8, r9, r10, r11, r12}\n"
            "1: ldr r7, [sp, #12]\n"
            "ldrd r8, r9, [r7], #8\n"
            "str r7, [sp, #12]\n"
            "ldr r0, [sp]\n"
            "mov r10, r8\n"
            "mov r11, r9\n"
            "mov r12, r8\n"
            "mov lr, r9\n"
            "ldr pc, [sp, #8]\n"
            ".balign 4\n" /* ADR counts from words */
            "2:\n" TW_SMLAD_QUAD TW_SMLAD_QUAD TW_SMLAD_QUAD TW_SMLAD_QUAD "3: ldr r7, [sp, #4]\n"
            "cmp r0, r7\n"
            "bne 2b\n"
            "ldrd r6, r7, [sp, #16]\n"
            "strd r10, r11, [r6, #64]\n"
            "strd r12, lr, [r6, #128]\n"
            "strd r8, r9, [r6], #8\n"
            "subs r7, r7, #1\n"
            "strd r6, r7, [sp, #16]\n"
            "bne 1b\n"
            "add sp, sp, #24\n"
            "pop {r4-r11, pc}\n");
}

/* r0 inputs, r1 weights, r2 to r5 pairs of two quads, r6 to r9 their weights, r10 a pair of them, r11 and r12 the sums. */
#define TW_SMLAD_ONE(first, second, even, odd)                                                                         \
    "sxtb16 r10, " first "\n"                                                                                          \
    "smlad r11, " even ", r10, r11\n"                                                                                  \
    "sxtb16 r10, " second "\n"                                                                                         \
    "smlad r12, " even ", r10, r12\n"                                                                                  \
    "sxtb16 r10, " first ", ror #8\n"                                                                                  \
    "smlad r11, " odd ", r10, r11\n"                                                                                   \
    "sxtb16 r10, " second ", ror #8\n"                                                                                 \
    "smlad r12, " odd ", r10, r12\n"
#define TW_SMLAD_TWO                                                                                                   \
    "ldmia r0!, {r2, r3, r4, r5}\n"                                                                                    \
    "ldmia r1!, {r6, r7, r8, r9}\n" TW_SMLAD_ONE("r6", "r7", "r2", "r3") TW_SMLAD_ONE("r8", "r9", "r4", "r5")

/* On the stack: inputs, quads, bias, out, pairs. */
TW_ARM_TEXT void tw_smlad_1(TW_ARM_UNUSED const struct tw_smlad *job) {
    __asm__("push {r4-r11, lr}\n"
            "ldm r0, {r0-r5}\n"
            "mov r6, r2\n"
            "mov r2, r0\n"
            "mov r7, r3\n"
            "mov r8, r5\n"
            "push {r2, r4, r6, r7, r8, r9}\n"
            "1: ldr r6, [sp, #8]\n"
            "ldrd r11, r12, [r6], #8\n"
            "str r6, [sp, #8]\n"
            "ldrd r0, r6, [sp]\n"
            "lsrs lr, r6, #2\n"
            "beq 3f\n"
            "2:\n" TW_SMLAD_TWO TW_SMLAD_TWO "subs lr, lr, #1\n"
            "bne 2b\n"
            "ldr r6, [sp, #4]\n"
            "3: ands lr, r6, #3\n"
            "beq 5f\n"
            "4: ldmia r0!, {r2, r3}\n"
            "ldrd r6, r7, [r1], #8\n" TW_SMLAD_ONE("r6", "r7", "r2", "r3") "subs lr, lr, #1\n"
                                                                           "bne 4b\n"
                                                                           "5: ldrd r6, r7, [sp, #12]\n"
                                                                           "strd r11, r12, [r6], #8\n"
                                                                           "subs r7, r7, #1\n"
                                                                           "strd r6, r7, [sp, #12]\n"
                                                                           "bne 1b\n"
                                                                           "add sp, sp, #24\n"
                                                                           "pop {r4-r11, pc}\n");
}

/* Widens `quads` groups of four bytes of three pixels, and returns where the next ones go. */
#define TW_DEFINE_WIDEN(NAME, WIDEN)                                                                                   \
    TW_ARM_TEXT uint32_t *NAME##_3(TW_ARM_UNUSED uint32_t *to, TW_ARM_UNUSED int quads,                                \
                                   TW_ARM_UNUSED const void *const *x) {                                               \
        __asm__("push {r4-r9, lr}\n"                                                                                   \
                "ldm r2, {r2, r3, r12}\n"                                                                              \
                "1: ldr r4, [r2], #4\n"                                                                                \
                "ldr r5, [r3], #4\n"                                                                                   \
                "ldr r6, [r12], #4\n" WIDEN " r7, r4\n" WIDEN " r8, r5\n" WIDEN " r9, r6\n" WIDEN                      \
                " r4, r4, ror #8\n" WIDEN " r5, r5, ror #8\n" WIDEN " r6, r6, ror #8\n"                                \
                "stmia r0!, {r7, r8, r9}\n"                                                                            \
                "stmia r0!, {r4, r5, r6}\n"                                                                            \
                "subs r1, r1, #1\n"                                                                                    \
                "bne 1b\n"                                                                                             \
                "pop {r4-r9, pc}\n");                                                                                  \
    }                                                                                                                  \
    TW_ARM_TEXT uint32_t *NAME##_1(TW_ARM_UNUSED uint32_t *to, TW_ARM_UNUSED int quads,                                \
                                   TW_ARM_UNUSED const void *const *x) {                                               \
        __asm__("push {r4, lr}\n"                                                                                      \
                "ldr r2, [r2]\n"                                                                                       \
                "1: ldr r4, [r2], #4\n" WIDEN " r3, r4\n" WIDEN " r4, r4, ror #8\n"                                    \
                "subs r1, r1, #1\n"                                                                                    \
                "strd r3, r4, [r0], #8\n"                                                                              \
                "bne 1b\n"                                                                                             \
                "pop {r4, pc}\n");                                                                                     \
    }
TW_DEFINE_WIDEN(tw_widen_s8, "sxtb16")
TW_DEFINE_WIDEN(tw_widen_u8, "uxtb16")

#else

TW_INLINE void tw_smlad_pixels(const int PIXELS, const struct tw_smlad *job) {
    for (int filter = 0; filter < job->pairs * 2; filter++) {
        for (int pixel = 0; pixel < PIXELS; pixel++) {
            int32_t sum = job->bias[filter];
            for (int quad = 0; quad < job->quads; quad++) {
                const uint32_t *x = job->x + quad * 2 * PIXELS + pixel;
                const uint32_t w = tw_load_word(job->w + ((filter / 2 * job->quads + quad) * 2 + filter % 2) * 4);
                sum = tw_dual(x[PIXELS], tw_odd_s8(w), tw_dual(x[0], tw_even_s8(w), sum));
            }
            job->out[pixel * 16 + filter] = sum;
        }
    }
}
TW_APART void tw_smlad_3(const struct tw_smlad *job) { tw_smlad_pixels(3, job); }
TW_APART void tw_smlad_1(const struct tw_smlad *job) { tw_smlad_pixels(1, job); }

#define TW_DEFINE_WIDEN(NAME, PIXELS, KIND)                                                                            \
    TW_APART uint32_t *NAME(uint32_t *to, int quads, const void *const *x) {                                           \
        for (int quad = 0; quad < quads; quad++, to += 2 * (PIXELS)) {                                                 \
            for (int pixel = 0; pixel < (PIXELS); pixel++) {                                                           \
                const uint32_t word = tw_load_word((const char *)x[pixel] + quad * 4);                                 \
                to[pixel] = tw_even_##KIND(word);                                                                      \
                to[pixel + (PIXELS)] = tw_odd_##KIND(word);                                                            \
            }                                                                                                          \
        }                                                                                                              \
        return to;                                                                                                     \
    }
TW_DEFINE_WIDEN(tw_widen_s8_1, 1, s8)
TW_DEFINE_WIDEN(tw_widen_s8_3, 3, s8)
TW_DEFINE_WIDEN(tw_widen_u8_1, 1, u8)
TW_DEFINE_WIDEN(tw_widen_u8_3, 3, u8)

#endif

/* By the type of `bytes`: `quads` groups of four of each pixel, 1 or 3, from the addresses in `x`. */
#define tw_widen(bytes, pixels, to, quads, x)                                                                          \
    ((pixels) == 1 ? _Generic((bytes), const int8_t *: tw_widen_s8_1, const uint8_t *: tw_widen_u8_1)(to, quads, x)    \
                   : _Generic((bytes), const int8_t *: tw_widen_s8_3, const uint8_t *: tw_widen_u8_3)(to, quads, x))

/* Widens rows of `length` bytes, whose last ones are put into `rest` with zeros behind: there might be nothing there. Of
 * two rows the last one is done twice; returns how many rows there are then. */
#define TW_DEFINE_WIDEN_ROWS(NAME, TYPE)                                                                               \
    TW_APART int NAME##_rows(uint32_t *to, const TYPE *x, ptrdiff_t x_row, int rows, int length, TYPE *rest) {         \
        const int many = rows == 1 ? 1 : 3, whole = length / 4;                                                        \
        const void *from[3], *ends[3];                                                                                 \
        for (int i = 0; i < many; i++) {                                                                               \
            const TYPE *row = x + tw_min(i, rows - 1) * x_row;                                                         \
            from[i] = row;                                                                                             \
            ends[i] = rest + i * 4;                                                                                    \
            for (int k = 0; k < 4 && length % 4; k++)                                                                  \
                rest[i * 4 + k] = whole * 4 + k < length ? row[whole * 4 + k] : (TYPE)0;                               \
        }                                                                                                              \
        if (whole)                                                                                                     \
            to = many == 1 ? NAME##_1(to, whole, from) : NAME##_3(to, whole, from);                                    \
        if (length % 4)                                                                                                \
            (void)(many == 1 ? NAME##_1(to, 1, ends) : NAME##_3(to, 1, ends));                                         \
        return many;                                                                                                   \
    }
TW_DEFINE_WIDEN_ROWS(tw_widen_s8, int8_t)
TW_DEFINE_WIDEN_ROWS(tw_widen_u8, uint8_t)
#define tw_widen_rows(to, x, ...)                                                                                      \
    _Generic((x), const int8_t *: tw_widen_s8_rows, const uint8_t *: tw_widen_u8_rows)(to, x, __VA_ARGS__)

/* The bias of pairs of filters from `first` on: in place, or copied to `panel` where there is none for a whole pair. */
TW_INLINE const int32_t *tw_smlad_bias(const int32_t *bias, int first, int count, int32_t *panel) {
    return bias && count % 2 == 0 ? bias + first : tw_bias_s32(bias, first, count, panel);
}

/* All filters of a block of 16 or fewer. */
TW_INLINE void tw_smlad_block(int pixels, const uint32_t *x, const int8_t *w, int quads, int filters,
                              const int32_t *bias, int32_t *out) {
    const struct tw_smlad job = {x, w, bias, out, quads, (filters + 1) / 2};
    if (pixels == 1)
        tw_smlad_1(&job);
    else
        tw_smlad_3(&job);
}

#endif
