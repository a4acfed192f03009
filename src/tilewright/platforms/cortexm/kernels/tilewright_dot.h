/* Dot products of bytes in tiles of two by two: more sums than that do not fit the registers of a Cortex-M0+. Lengths are
 * multiples of 16. */
#ifndef TILEWRIGHT_DOT_H
#define TILEWRIGHT_DOT_H

#include "tilewright_arm.h"
#include <stddef.h>

#define TW_DOT_TILES
#if defined(__GNUC__) && defined(__thumb__) && !defined(__thumb2__)
/* r0 and r1 rows, r2 and r3 filters, r4 what is left of their length, r8 to r11 sums: 57 instructions for 16 products. */
#define TW_DOT_STEP(LOAD)                                                                                              \
    LOAD " r5, [r0, r4]\n"                                                                                             \
         "ldrsb r6, [r2, r4]\n"                                                                                        \
         "muls r6, r5, r6\n"                                                                                           \
         "add r8, r8, r6\n"                                                                                            \
         "ldrsb r7, [r3, r4]\n"                                                                                        \
         "muls r5, r7, r5\n"                                                                                           \
         "add r9, r9, r5\n" LOAD " r5, [r1, r4]\n"                                                                     \
         "muls r7, r5, r7\n"                                                                                           \
         "add r11, r11, r7\n"                                                                                          \
         "ldrsb r6, [r2, r4]\n"                                                                                        \
         "muls r6, r5, r6\n"                                                                                           \
         "add r10, r10, r6\n"                                                                                          \
         "subs r4, r4, #1\n"
#define TW_DEFINE_DOT_TWO(NAME, TYPE, LOAD)                                                                            \
    TW_ARM_TEXT void NAME##_two(TW_ARM_UNUSED const TYPE *a, TW_ARM_UNUSED const TYPE *b,                              \
                                TW_ARM_UNUSED const int8_t *v, TW_ARM_UNUSED const int8_t *w,                          \
                                TW_ARM_UNUSED int length, TW_ARM_UNUSED const int32_t *bias,                           \
                                TW_ARM_UNUSED int32_t *out) {                                                          \
        __asm__(".syntax unified\n"                                                                                    \
                "push {r4-r7, lr}\n"                                                                                   \
                "mov r4, r8\n"                                                                                         \
                "mov r5, r9\n"                                                                                         \
                "mov r6, r10\n"                                                                                        \
                "mov r7, r11\n"                                                                                        \
                "push {r4-r7}\n"                                                                                       \
                "ldr r5, [sp, #40]\n"                                                                                  \
                "ldr r6, [r5]\n"                                                                                       \
                "ldr r7, [r5, #4]\n"                                                                                   \
                "mov r8, r6\n"                                                                                         \
                "mov r9, r7\n"                                                                                         \
                "mov r10, r6\n"                                                                                        \
                "mov r11, r7\n"                                                                                        \
                "ldr r4, [sp, #36]\n"                                                                                  \
                "subs r4, r4, #1\n"                                                                                    \
                "bmi 2f\n"                                                                                             \
                "1:\n" TW_DOT_STEP(LOAD) TW_DOT_STEP(LOAD) TW_DOT_STEP(LOAD)                                           \
                    TW_DOT_STEP(LOAD) "bpl 1b\n"                                                                       \
                                      "2: ldr r5, [sp, #44]\n"                                                         \
                                      "mov r6, r8\n"                                                                   \
                                      "mov r7, r9\n"                                                                   \
                                      "str r6, [r5]\n"                                                                 \
                                      "str r7, [r5, #4]\n"                                                             \
                                      "mov r6, r10\n"                                                                  \
                                      "mov r7, r11\n"                                                                  \
                                      "str r6, [r5, #64]\n"                                                            \
                                      "str r7, [r5, #68]\n"                                                            \
                                      "pop {r4-r7}\n"                                                                  \
                                      "mov r8, r4\n"                                                                   \
                                      "mov r9, r5\n"                                                                   \
                                      "mov r10, r6\n"                                                                  \
                                      "mov r11, r7\n"                                                                  \
                                      "pop {r4-r7, pc}\n");                                                            \
    }
#else
#define TW_DEFINE_DOT_TWO(NAME, TYPE, LOAD)                                                                            \
    TW_ARM_APART void NAME##_two(const TYPE *a, const TYPE *b, const int8_t *v, const int8_t *w, int length,           \
                                 const int32_t *bias, int32_t *out) {                                                  \
        int32_t av = bias[0], aw = bias[1], bv = bias[0], bw = bias[1];                                                \
        for (int k = 0; k < length; k++) {                                                                             \
            av += a[k] * v[k];                                                                                         \
            aw += a[k] * w[k];                                                                                         \
            bv += b[k] * v[k];                                                                                         \
            bw += b[k] * w[k];                                                                                         \
        }                                                                                                              \
        out[0] = av;                                                                                                   \
        out[1] = aw;                                                                                                   \
        out[16] = bv;                                                                                                  \
        out[17] = bw;                                                                                                  \
    }
#endif
TW_DEFINE_DOT_TWO(tw_dot_rows_s8, int8_t, "ldrsb")
TW_DEFINE_DOT_TWO(tw_dot_rows_u8, uint8_t, "ldrb")

#define TW_DEFINE_DOT_TILE(NAME, TYPE)                                                                                 \
    TW_ARM_APART void NAME##_one(const TYPE *a, const int8_t *v, const int8_t *w, int length, const int32_t *bias,     \
                                 int32_t *out) {                                                                       \
        int32_t av = bias[0], aw = bias[1];                                                                            \
        for (int k = 0; k < length; k++) {                                                                             \
            av += a[k] * v[k];                                                                                         \
            aw += a[k] * w[k];                                                                                         \
        }                                                                                                              \
        out[0] = av;                                                                                                   \
        out[1] = aw;                                                                                                   \
    }                                                                                                                  \
    TW_ARM_INLINE void NAME##_tile(const int ROWS, const TYPE *a, ptrdiff_t a_row, const int8_t *b, ptrdiff_t b_row,   \
                                   int length, const int32_t *bias, int32_t *out) {                                    \
        for (int j = 0; j < 4; j += 2, b += 2 * b_row) {                                                               \
            if (ROWS == 1)                                                                                             \
                NAME##_one(a, b, b + b_row, length, bias + j, out + j);                                                \
            for (int i = 0; i + 1 < ROWS; i += 2)                                                                      \
                NAME##_two(a + i * a_row, a + (i + 1) * a_row, b, b + b_row, length, bias + j, out + i * 16 + j);      \
        }                                                                                                              \
    }
TW_DEFINE_DOT_TILE(tw_dot_rows_s8, int8_t)
TW_DEFINE_DOT_TILE(tw_dot_rows_u8, uint8_t)

#endif
