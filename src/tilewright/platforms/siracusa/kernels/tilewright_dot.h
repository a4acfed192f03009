/* Dot products of rows with XpulpV2: four products an instruction, loads that move their pointer on, loops without a
 * branch. Kernels in plain C get these tiles in place of their own (tilewright_tile.h). */
#ifndef TILEWRIGHT_DOT_H
#define TILEWRIGHT_DOT_H

#include <stddef.h>
#include <stdint.h>

#define TW_DOT_TILES

/* pv.sdotsp.b for signed times signed bytes, pv.sdotusp.b for unsigned times signed ones; p.lw of the next word. */
#define TW_SDOT_S8 "0x5C"
#define TW_SDOT_U8 "0x54"
#define TW_SDOT(CODE, sum, a, b) ".insn r 0x57, 1, " CODE ", " sum ", " a ", " b "\n"
#define TW_NEXT_WORD(to, from) ".insn i 0x0B, 2, " to ", 4(" from ")\n"
/* Repeats the following instructions, of which the last starts `halfwords` behind the loop's own address. */
#define TW_REPEAT(count, halfwords) ".insn i 0x7B, 4, x0, " count ", " halfwords "\n"

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

#endif
