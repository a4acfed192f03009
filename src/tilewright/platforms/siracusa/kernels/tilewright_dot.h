/* Dot products of rows with XpulpV2: four products an instruction, loads that move their pointer on, loops without a
 * branch. Kernels in plain C get these tiles in place of their own (tilewright_tile.h). */
#ifndef TILEWRIGHT_DOT_H
#define TILEWRIGHT_DOT_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define TW_DOT_TILES

/* Float tiles of 4 x 4: with their operands they fill 24 of 32 registers. */
#define TW_TILE_WIDTH 4
#define TW_TILE_UNROLL _Pragma("GCC unroll 2")

/* The library's rintf asks many questions; a conversion to an integer and back rounds the same way. */
static inline float tw_rintf(float x) {
    int32_t whole;
    __asm__("fcvt.w.s %0, %1, rne" : "=r"(whole) : "f"(x));
    return fabsf(x) < 8388608.0f ? copysignf((float)whole, x) : x;
}
#define rintf tw_rintf

/* pv.sdotsp.b for signed times signed bytes, pv.sdotusp.b for unsigned times signed ones; p.lw of the next word. */
#define TW_SDOT_S8 "0x5C"
#define TW_SDOT_U8 "0x54"
#define TW_SDOT(CODE, sum, a, b) ".insn r 0x57, 1, " CODE ", " sum ", " a ", " b "\n"
#define TW_NEXT_WORD(to, from) ".insn i 0x0B, 2, " to ", 4(" from ")\n"
/* Repeats the following instructions, of which the last starts `halfwords` behind the loop's own address. */
#define TW_REPEAT(count, halfwords) ".insn i 0x7B, 4, x0, " count ", " halfwords "\n"
/* Repeats what is to be done with a tap for all columns of a window and all its rows, `jump` bytes apart. Loops around
 * loops have two instructions behind these. */
#define TW_WINDOW(rows_halfwords, columns_halfwords, TAP)                                                              \
    ".option push\n.option norvc\n.insn i 0x7B, 4, x1, %[rows], " rows_halfwords                                       \
    "\n" TW_REPEAT("%[columns]", columns_halfwords) TAP "add %[x], %[x], %[jump]\nnop\n.option pop\n"

/* out[i * 16 + j] = bias[j] + a_row[i] . b_row[j] for four rows of a and two of b: six loads and eight products. */
#define TW_DOT_4X2(CODE, a, a_row, b, b_row, length, bias, out)                                                        \
    {                                                                                                                  \
        int32_t s00 = (bias)[0], s01 = (bias)[1], s10 = s00, s11 = s01, s20 = s00, s21 = s01, s30 = s00, s31 = s01;    \
        const void *a0 = (a), *a1 = (a) + (a_row), *a2 = (a) + 2 * (a_row), *a3 = (a) + 3 * (a_row);                   \
        const void *b0 = (b), *b1 = (b) + (b_row);                                                                     \
        __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[words]", "28") TW_NEXT_WORD("t0", "%[b0]")       \
                             TW_NEXT_WORD("t1", "%[b1]") TW_NEXT_WORD("t2", "%[a0]") TW_NEXT_WORD("t3", "%[a1]")       \
                                 TW_NEXT_WORD("t4", "%[a2]") TW_NEXT_WORD("t5", "%[a3]")                               \
                                     TW_SDOT(CODE, "%[s00]", "t2", "t0") TW_SDOT(CODE, "%[s01]", "t2", "t1")           \
                                         TW_SDOT(CODE, "%[s10]", "t3", "t0") TW_SDOT(CODE, "%[s11]", "t3", "t1")       \
                                             TW_SDOT(CODE, "%[s20]", "t4", "t0") TW_SDOT(CODE, "%[s21]", "t4", "t1")   \
                                                 TW_SDOT(CODE, "%[s30]", "t5", "t0")                                   \
                                                     TW_SDOT(CODE, "%[s31]", "t5", "t1") ".option pop\n"               \
                         : [s00] "+r"(s00), [s01] "+r"(s01), [s10] "+r"(s10), [s11] "+r"(s11), [s20] "+r"(s20),        \
                           [s21] "+r"(s21), [s30] "+r"(s30), [s31] "+r"(s31), [a0] "+r"(a0), [a1] "+r"(a1),            \
                           [a2] "+r"(a2), [a3] "+r"(a3), [b0] "+r"(b0), [b1] "+r"(b1)                                  \
                         : [words] "r"((length) / 4)                                                                   \
                         : "t0", "t1", "t2", "t3", "t4", "t5", "memory");                                              \
        (out)[0] = s00, (out)[1] = s01, (out)[16] = s10, (out)[17] = s11;                                              \
        (out)[32] = s20, (out)[33] = s21, (out)[48] = s30, (out)[49] = s31;                                            \
    }

/* The same for one row of a and four of b. */
#define TW_DOT_1X4(CODE, a, b, b_row, length, bias, out)                                                               \
    {                                                                                                                  \
        int32_t s0 = (bias)[0], s1 = (bias)[1], s2 = (bias)[2], s3 = (bias)[3];                                        \
        const void *a0 = (a), *b0 = (b), *b1 = (b) + (b_row), *b2 = (b) + 2 * (b_row), *b3 = (b) + 3 * (b_row);        \
        __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[words]", "18") TW_NEXT_WORD("t0", "%[a0]")       \
                             TW_NEXT_WORD("t1", "%[b0]") TW_NEXT_WORD("t2", "%[b1]") TW_NEXT_WORD("t3", "%[b2]")       \
                                 TW_NEXT_WORD("t4", "%[b3]") TW_SDOT(CODE, "%[s0]", "t0", "t1")                        \
                                     TW_SDOT(CODE, "%[s1]", "t0", "t2") TW_SDOT(CODE, "%[s2]", "t0", "t3")             \
                                         TW_SDOT(CODE, "%[s3]", "t0", "t4") ".option pop\n"                            \
                         : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [a0] "+r"(a0), [b0] "+r"(b0),   \
                           [b1] "+r"(b1), [b2] "+r"(b2), [b3] "+r"(b3)                                                 \
                         : [words] "r"((length) / 4)                                                                   \
                         : "t0", "t1", "t2", "t3", "t4", "memory");                                                    \
        (out)[0] = s0, (out)[1] = s1, (out)[2] = s2, (out)[3] = s3;                                                    \
    }

#define TW_DEFINE_DOT_TILE(NAME, TYPE, CODE)                                                                           \
    static inline void NAME##_tile(const int ROWS, const TYPE *a, ptrdiff_t a_row, const int8_t *b, ptrdiff_t b_row,   \
                                   int length, const int32_t *bias, int32_t *out) {                                    \
        if (ROWS == 4) {                                                                                               \
            TW_DOT_4X2(CODE, a, a_row, b, b_row, length, bias, out)                                                    \
            TW_DOT_4X2(CODE, a, a_row, b + 2 * b_row, b_row, length, bias + 2, out + 2)                                \
        } else {                                                                                                       \
            TW_DOT_1X4(CODE, a, b, b_row, length, bias, out)                                                           \
        }                                                                                                              \
    }
TW_DEFINE_DOT_TILE(tw_dot_rows_s8, int8_t, TW_SDOT_S8)
TW_DEFINE_DOT_TILE(tw_dot_rows_u8, uint8_t, TW_SDOT_U8)

/* Four pixels of an image and what lies behind them: `rows` runs of `words` words each, with `step` bytes from the end of
 * a run to the next one. The assembler text below knows where each member is. */
struct tw_runs {
    const void *a[4];
    const void *b;
    int32_t words, rows, step[4];
    const int32_t *bias;
};

/* Pixels by fours: the next four are 4 * `next` bytes behind the last ones in the image, and 4 * `pitch` elements in the
 * result, where the first ones are at `at`. */
struct tw_line {
    int fours, next, pitch, at[4];
};

/* sum[i * 4 + j] = bias[j] + the products of all runs of pixel i with channel j, for four of both: eight loads and 16
 * products. The weights of the four channels take turns, word by word; `b` is moved on to those of the next four. There
 * are more registers in it than operands can name, so all are named here; those of pointers have short instructions,
 * because a core's cache holds 512 bytes. Pixels are read in even cycles and weights in odd ones: cores that are an even
 * number of cycles apart then seldom meet in a bank, and each meeting makes a core that is not one cycle later. */
#define TW_PRODUCTS(CODE, B, FIRST, SECOND, THIRD, FOURTH)                                                             \
    FIRST                                                                                                              \
    TW_NEXT_WORD("a4", B)                                                                                              \
    SECOND                                                                                                             \
    TW_SDOT(CODE, "a6", "t0", "a4")                                                                                    \
    THIRD                                                                                                              \
    TW_SDOT(CODE, "s4", "t1", "a4")                                                                                    \
    FOURTH                                                                                                             \
    TW_NEXT_WORD("a5", B)                                                                                              \
    TW_SDOT(CODE, "s8", "t2", "a4")                                                                                    \
    TW_SDOT(CODE, "t4", "t3", "a4")                                                                                    \
    TW_SDOT(CODE, "a7", "t0", "a5")                                                                                    \
    TW_NEXT_WORD("a4", B)                                                                                              \
    TW_SDOT(CODE, "s5", "t1", "a5")                                                                                    \
    TW_SDOT(CODE, "s9", "t2", "a5")                                                                                    \
    TW_SDOT(CODE, "t5", "t3", "a5")                                                                                    \
    TW_NEXT_WORD("a5", B)                                                                                              \
    TW_SDOT(CODE, "s2", "t0", "a4")                                                                                    \
    TW_SDOT(CODE, "s6", "t1", "a4")                                                                                    \
    TW_SDOT(CODE, "s10", "t2", "a4")                                                                                   \
    TW_SDOT(CODE, "t6", "t3", "a4")                                                                                    \
    TW_SDOT(CODE, "s3", "t0", "a5")                                                                                    \
    TW_SDOT(CODE, "s7", "t1", "a5")                                                                                    \
    TW_SDOT(CODE, "s11", "t2", "a5")                                                                                   \
    TW_SDOT(CODE, "ra", "t3", "a5")
#define TW_PRODUCTS_OF_FOUR(CODE, B)                                                                                   \
    TW_PRODUCTS(CODE, B, TW_NEXT_WORD("t0", "s0"), TW_NEXT_WORD("t1", "s1"), TW_NEXT_WORD("t2", "a1"),                 \
                TW_NEXT_WORD("t3", "a2"))
#define TW_RUN(CODE, B) TW_REPEAT("a5", "48") TW_PRODUCTS_OF_FOUR(CODE, B)
#define TW_SAME_SUMS                                                                                                   \
    "mv s4, a6\nmv s5, a7\nmv s6, s2\nmv s7, s3\nmv s8, a6\nmv s9, a7\nmv s10, s2\nmv s11, s3\n"                       \
    "mv t4, a6\nmv t5, a7\nmv t6, s2\nmv ra, s3\n"
#define TW_ONE_RUN(CODE, B) ".balign 4\n.option norvc\n" TW_RUN(CODE, B)
#define TW_ALL_RUNS(CODE, B)                                                                                           \
    "lw a4, 24(a0)\n.balign 4\n.option norvc\n.insn i 0x7B, 4, x1, a4, 68\nlw a5, 20(a0)\n" TW_RUN(                    \
        CODE, B) "lw t0, 28(a0)\nlw t1, 32(a0)\nlw t2, 36(a0)\nlw t3, 40(a0)\n"                                        \
                 "add s0, s0, t0\nadd s1, s1, t1\nadd a1, a1, t2\nadd a2, a2, t3\n"
#define TW_DOT_RUNS(TEXT)                                                                                              \
    __asm__ volatile(".option push\n.option rvc\n"                                                                     \
                     "lw a4, 44(a0)\nlw a5, 20(a0)\nlw a6, 0(a4)\nlw a7, 4(a4)\nlw s2, 8(a4)\nlw s3, 12(a4)\n"         \
                     "lw s0, 0(a0)\nlw s1, 4(a0)\nlw a1, 8(a0)\nlw a2, 12(a0)\nlw a3, 16(a0)\n" TW_SAME_SUMS TEXT      \
                     ".option rvc\nsw a3, 16(a0)\n.option pop\n"                                                       \
                     : "=r"(s00), "=r"(s01), "=r"(s02), "=r"(s03), "=r"(s10), "=r"(s11), "=r"(s12), "=r"(s13),         \
                       "=r"(s20), "=r"(s21), "=r"(s22), "=r"(s23), "=r"(s30), "=r"(s31), "=r"(s32), "=r"(s33)          \
                     : "r"(runs)                                                                                       \
                     : "s0", "s1", "a1", "a2", "a3", "a4", "a5", "t0", "t1", "t2", "t3", "memory")
#define TW_DEFINE_DOT_RUNS(NAME, CODE)                                                                                 \
    static inline __attribute__((always_inline)) void NAME(struct tw_runs *given, const int single, int32_t *sum) {    \
        register struct tw_runs *runs __asm__("a0") = given;                                                           \
        register int32_t s00 __asm__("a6"), s01 __asm__("a7"), s02 __asm__("s2"), s03 __asm__("s3");                   \
        register int32_t s10 __asm__("s4"), s11 __asm__("s5"), s12 __asm__("s6"), s13 __asm__("s7");                   \
        register int32_t s20 __asm__("s8"), s21 __asm__("s9"), s22 __asm__("s10"), s23 __asm__("s11");                 \
        register int32_t s30 __asm__("t4"), s31 __asm__("t5"), s32 __asm__("t6"), s33 __asm__("ra");                   \
        if (single)                                                                                                    \
            TW_DOT_RUNS(TW_ONE_RUN(CODE, "a3"));                                                                       \
        else                                                                                                           \
            TW_DOT_RUNS(TW_ALL_RUNS(CODE, "a3"));                                                                      \
        sum[0] = s00, sum[1] = s01, sum[2] = s02, sum[3] = s03, sum[4] = s10, sum[5] = s11, sum[6] = s12;              \
        sum[7] = s13, sum[8] = s20, sum[9] = s21, sum[10] = s22, sum[11] = s23, sum[12] = s30, sum[13] = s31;          \
        sum[14] = s32, sum[15] = s33;                                                                                  \
    }
TW_DEFINE_DOT_RUNS(tw_dot_runs_s8, TW_SDOT_S8)
TW_DEFINE_DOT_RUNS(tw_dot_runs_u8, TW_SDOT_U8)

/* sum[j] += a row of words times four, whose words take turns. Returns where the next four are. */
#define TW_DEFINE_DOT_ROW(NAME, CODE)                                                                                  \
    static inline __attribute__((always_inline)) const void *NAME(const void *a, const void *b, int words,             \
                                                                  int32_t *sum) {                                      \
        int32_t s0 = sum[0], s1 = sum[1], s2 = sum[2], s3 = sum[3];                                                    \
        __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[words]", "18") TW_NEXT_WORD("t0", "%[a]")        \
                             TW_NEXT_WORD("t1", "%[b]") TW_NEXT_WORD("t2", "%[b]") TW_NEXT_WORD("t3", "%[b]")          \
                                 TW_NEXT_WORD("t4", "%[b]") TW_SDOT(CODE, "%[s0]", "t0", "t1")                         \
                                     TW_SDOT(CODE, "%[s1]", "t0", "t2") TW_SDOT(CODE, "%[s2]", "t0", "t3")             \
                                         TW_SDOT(CODE, "%[s3]", "t0", "t4") ".option pop\n"                            \
                         : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [a] "+r"(a), [b] "+r"(b)        \
                         : [words] "r"(words)                                                                          \
                         : "t0", "t1", "t2", "t3", "t4", "memory");                                                    \
        sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3;                                                            \
        return b;                                                                                                      \
    }
TW_DEFINE_DOT_ROW(tw_dot_row_s8, TW_SDOT_S8)
TW_DEFINE_DOT_ROW(tw_dot_row_u8, TW_SDOT_U8)

/* sum[j] = a word times the word b[j]. */
#define TW_DEFINE_DOT_WORDS(NAME, CODE)                                                                                \
    static inline void NAME(uint32_t a, const uint32_t *b, int pairs, int32_t *sum) {                                  \
        __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[pairs]", "12") TW_NEXT_WORD("t0", "%[b]")        \
                             TW_NEXT_WORD("t1", "%[b]") TW_SDOT(CODE, "t0", "%[a]", "t0")                              \
                                 TW_SDOT(CODE, "t1", "%[a]", "t1") ".insn s 0x2B, 2, t0, 4(%[to])\n"                   \
                                                                   ".insn s 0x2B, 2, t1, 4(%[to])\n.option pop\n"      \
                         : [b] "+r"(b), [to] "+r"(sum)                                                                 \
                         : [a] "r"(a), [pairs] "r"(pairs)                                                              \
                         : "t0", "t1", "memory");                                                                      \
    }
TW_DEFINE_DOT_WORDS(tw_dot_words_s8, "0x4C")
TW_DEFINE_DOT_WORDS(tw_dot_words_u8, "0x44")

/* Words, at any address: copied, or set to one value. */
static inline void tw_copy_words(void *to, const void *from, int words) {
    if (words & 1) {
        uint32_t word;
        __asm__ volatile(TW_NEXT_WORD("%[w]", "%[from]") ".insn s 0x2B, 2, %[w], 4(%[to])\n"
                         : [w] "=&r"(word), [to] "+r"(to), [from] "+r"(from)
                         :
                         : "memory");
    }
    if (words > 1)
        __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[pairs]", "8") TW_NEXT_WORD("t0", "%[from]")
                             TW_NEXT_WORD("t1", "%[from]") ".insn s 0x2B, 2, t0, 4(%[to])\n"
                                                           ".insn s 0x2B, 2, t1, 4(%[to])\n.option pop\n"
                         : [to] "+r"(to), [from] "+r"(from)
                         : [pairs] "r"(words >> 1)
                         : "t0", "t1", "memory");
}
static inline void tw_copy_bytes(void *to, const void *from, int bytes) {
    tw_copy_words(to, from, bytes >> 2);
    for (int i = bytes & ~3; i < bytes; i++)
        ((char *)to)[i] = ((const char *)from)[i];
}
static inline void tw_fill_words(void *to, int byte, int words) {
    __asm__ volatile(
        ".option push\n.option norvc\n" TW_REPEAT("%[words]", "4") "nop\n"
                                                                   ".insn s 0x2B, 2, %[value], 4(%[to])\n.option pop\n"
        : [to] "+r"(to)
        : [words] "r"(words), [value] "r"((uint32_t)(byte & 0xFF) * 0x01010101u)
        : "memory");
}

/* The taps of a filter in an image of bytes. */
struct tw_window_patch {
    int x_col, x_row, C, KH, KW, IH, IW, dilations_0, dilations_1, zero;
    int words; /* of one row of the filter in a patch */
};

/* Copies the taps from (ih, iw) on side by side, each row of the filter from a word on; those outside are `zero`. */
static __attribute__((noinline, unused)) void tw_gather_patch(const struct tw_window_patch *s, const void *image,
                                                              int ih, int iw, char *patch) {
    const int together = s->dilations_1 == 1 && s->x_col == s->C;
    const int from = iw < 0 ? -iw : 0, to = s->IW - iw < s->KW ? s->IW - iw : s->KW;
    for (int kh = 0; kh < s->KH; kh++, ih += s->dilations_0, patch += s->words * 4) {
        const char *x = (const char *)image + ih * s->x_row + iw * s->x_col;
        const int inside = ih >= 0 && ih < s->IH;
        if (!inside || iw < 0 || iw + (s->KW - 1) * s->dilations_1 >= s->IW)
            tw_fill_words(patch, s->zero, s->words);
        if (inside && together) {
            if (to > from)
                tw_copy_bytes(patch + from * s->C, x + from * s->C, (to - from) * s->C);
        } else if (inside) {
            for (int kw = 0, at = iw; kw < s->KW; kw++, at += s->dilations_1)
                if (at >= 0 && at < s->IW)
                    tw_copy_bytes(patch + kw * s->C, x + kw * s->dilations_1 * s->x_col, s->C);
        }
    }
}

#include "tilewright_columns.h"

#endif
