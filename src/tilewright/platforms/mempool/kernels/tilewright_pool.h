/* Dot products of rows with Xpulpimg, which all kernels of products share: four rows times four columns, four products of
 * bytes or two of halfwords an instruction. */
#ifndef TILEWRIGHT_POOL_H
#define TILEWRIGHT_POOL_H

#include <stdint.h>

/* Sixteen sums of four rows and four columns, whose words take turns. Cores that read the same words begin at different
 * ones, or they would wait for the same bank: `first` bytes of the columns from where the pointers are, then `second` from
 * the beginning, to where pointers of rows go back by `row` bytes and that of the columns by `columns`. */
struct tw_pool_dot {
    const void *a[4], *b;
    int first, second, row, columns;
    int32_t sum[16];
};

/* All four rows begin with the sums of `count` columns in `bias`, or with nothing. */
static inline void tw_pool_begin(struct tw_pool_dot *dot, const int32_t *bias, int count) {
    for (int j = 0; j < 4; j++) {
        const int32_t sum = bias && j < count ? bias[j] : 0;
        dot->sum[j] = dot->sum[4 + j] = dot->sum[8 + j] = dot->sum[12 + j] = sum;
    }
}

/* p.lw of the next word; pv.sdotsp.b, pv.sdotusp.b, pv.sdotsp.h. */
#define TW_NEXT(to, from) ".insn i 0x0B, 2, " to ", 4(" from ")\n"
#define TW_ADD_DOT(CODE, sum, a, b) ".insn r 0x57, " CODE ", " sum ", " a ", " b "\n"
#define TW_POOL_S8 "1, 0x5C"
#define TW_POOL_U8 "1, 0x54"
#define TW_POOL_S16 "0, 0x5C"

/* Loads are far from their use: words of other groups come after five cycles. The loop is 25 instructions, which fit the
 * four lines that a core has for itself. */
#define TW_POOL_STEP(CODE)                                                                                             \
    TW_NEXT("t0", "a1")                                                                                                \
    TW_NEXT("t3", "a5")                                                                                                \
    TW_NEXT("t4", "a5")                                                                                                \
    TW_NEXT("t5", "a5")                                                                                                \
    TW_NEXT("t6", "a5")                                                                                                \
    TW_NEXT("t1", "a2")                                                                                                \
    TW_NEXT("t2", "a3")                                                                                                \
    TW_ADD_DOT(CODE, "s0", "t0", "t3")                                                                                 \
    TW_ADD_DOT(CODE, "s1", "t0", "t4")                                                                                 \
    TW_ADD_DOT(CODE, "s2", "t0", "t5")                                                                                 \
    TW_ADD_DOT(CODE, "s3", "t0", "t6")                                                                                 \
    TW_NEXT("t0", "a4")                                                                                                \
    TW_ADD_DOT(CODE, "s4", "t1", "t3")                                                                                 \
    TW_ADD_DOT(CODE, "s5", "t1", "t4")                                                                                 \
    TW_ADD_DOT(CODE, "s6", "t1", "t5")                                                                                 \
    TW_ADD_DOT(CODE, "s7", "t1", "t6")                                                                                 \
    TW_ADD_DOT(CODE, "s8", "t2", "t3")                                                                                 \
    TW_ADD_DOT(CODE, "s9", "t2", "t4")                                                                                 \
    TW_ADD_DOT(CODE, "s10", "t2", "t5")                                                                                \
    TW_ADD_DOT(CODE, "s11", "t2", "t6")                                                                                \
    TW_ADD_DOT(CODE, "a7", "t0", "t3")                                                                                 \
    TW_ADD_DOT(CODE, "ra", "t0", "t4")                                                                                 \
    TW_ADD_DOT(CODE, "gp", "t0", "t5")                                                                                 \
    TW_ADD_DOT(CODE, "a0", "t0", "t6")

#define TW_EACH_SUM(DO)                                                                                                \
    DO("s0", "36")                                                                                                     \
    DO("s1", "40")                                                                                                     \
    DO("s2", "44")                                                                                                     \
    DO("s3", "48")                                                                                                     \
    DO("s4", "52")                                                                                                     \
    DO("s5", "56")                                                                                                     \
    DO("s6", "60")                                                                                                     \
    DO("s7", "64")                                                                                                     \
    DO("s8", "68") DO("s9", "72") DO("s10", "76") DO("s11", "80") DO("a7", "84") DO("ra", "88") DO("gp", "92")
#define TW_LOAD_SUM(sum, at) "lw " sum ", " at "(a0)\n"
#define TW_STORE_SUM(sum, at) "sw " sum ", " at "(t0)\n"
#define TW_POOL_TEXT(CODE)                                                                                             \
    "addi sp, sp, -16\nsw a0, 0(sp)\n"                                                                                 \
    "lw a1, 0(a0)\nlw a2, 4(a0)\nlw a3, 8(a0)\nlw a4, 12(a0)\nlw a5, 16(a0)\nlw a6, 20(a0)\nadd a6, a6, "              \
    "a5\n" TW_EACH_SUM(TW_LOAD_SUM) "lw a0, 96(a0)\n.balign 32\n1:\n" TW_POOL_STEP(                                    \
        CODE) "bne a5, a6, 1b\n"                                                                                       \
              "lw t0, 0(sp)\nlw t1, 24(t0)\nbeqz t1, 2f\nlw t2, 28(t0)\nlw t3, 32(t0)\nsw zero, 24(t0)\n"              \
              "sub a1, a1, t2\nsub a2, a2, t2\nsub a3, a3, t2\nsub a4, a4, t2\nsub a5, a5, t3\nadd a6, a5, t1\nj "     \
              "1b\n2:\n" TW_EACH_SUM(TW_STORE_SUM) "sw a0, 96(t0)\naddi sp, sp, 16\n"
/* Nothing here keeps anything in gp. */
#define TW_DEFINE_POOL_DOT(NAME, CODE)                                                                                 \
    static __attribute__((noinline, unused)) void NAME(struct tw_pool_dot *given) {                                    \
        register struct tw_pool_dot *dot __asm__("a0") = given;                                                        \
        __asm__ volatile(TW_POOL_TEXT(CODE)                                                                            \
                         : "+r"(dot)                                                                                   \
                         :                                                                                             \
                         : "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a1", "a2", "a3", "a4", "a5", "a6", "a7",   \
                           "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "memory");        \
    }
TW_DEFINE_POOL_DOT(tw_pool_dot_s8, TW_POOL_S8)
TW_DEFINE_POOL_DOT(tw_pool_dot_u8, TW_POOL_U8)
TW_DEFINE_POOL_DOT(tw_pool_dot_s16, TW_POOL_S16)

#endif
