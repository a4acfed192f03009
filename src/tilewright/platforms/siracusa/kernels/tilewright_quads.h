/* Products of four rows of bytes with columns by fours that become bytes at once: sums stay in registers until they are
 * scaled back, and the loop over columns just fits the 512 bytes of a core's cache. */
#ifndef TILEWRIGHT_QUADS_H
#define TILEWRIGHT_QUADS_H

#include "tilewright_dot.h"

#include <string.h>

/* Four rows, and where their results go: those of the first one to `y`, of the others `apart` bytes behind it. `table` has
 * what is added to the columns, up to `end`. The assembler text below knows where each member is. */
struct tw_quads {
    struct tw_runs runs;
    const void *table, *end;
    void *y;
    int32_t apart[3];
    int32_t last;    /* the shift, or what is added at last */
    int32_t more;    /* words of a run behind its first */
    int32_t factors; /* of integers, in bytes behind what is added */
};

/* Pixels by fours, `next` bytes apart, and their results `pitch` bytes apart. */
struct tw_even {
    const void *b, *table;
    int32_t blocks, y_next, x_next; /* columns by fours; from behind the last one of four pixels to the next four */
    const void *x_end;
    int32_t pitch;
    const void *x;
    void *y;
    int32_t next, back, y_back; /* from the last of four pixels to the next word of the first */
    int32_t more, shift, factors;
};

#define TW_CLIP_SIGNED(sum) ".insn r 0x33, 1, 0x0A, " sum ", " sum ", x8\n"          /* p.clip */
#define TW_CLIP_UNSIGNED(sum) ".insn r 0x33, 2, 0x0A, " sum ", " sum ", x9\n"        /* p.clipu */
#define TW_ROUND_SHIFT(sum, added) ".insn r 0x5B, 6, 0x20, " sum ", " added ", a2\n" /* p.addRNr */

/* Integers: (sum * factor + added) >> shift. What is added to the next column is at a3, its factor a5 bytes behind. */
#define TW_LOAD_AT(to, from, offset) ".insn r 0x03, 7, 0x10, " to ", " from ", " offset "\n"
#define TW_SHIFT_COLUMN(CLIP, FACTOR, added, s0, s1, s2, s3, ADDED)                                                    \
    "mul " s0 ", " s0 ", a4\nmul " s1 ", " s1 ", a4\nmul " s2 ", " s2 ", a4\nmul " s3 ", " s3 ", a4\n" FACTOR          \
    TW_ROUND_SHIFT(s0, added) TW_ROUND_SHIFT(s1, added) TW_ROUND_SHIFT(s2, added) TW_ROUND_SHIFT(s3, added)            \
        ADDED CLIP(s0) CLIP(s1) CLIP(s2) CLIP(s3)
#define TW_NEXT_FACTOR TW_LOAD_AT("a4", "a3", "a5")
#define TW_SHIFT_QUAD(CLIP)                                                                                            \
    TW_NEXT_FACTOR TW_NEXT_WORD("t0", "a3")                                                                            \
        TW_SHIFT_COLUMN(CLIP, TW_NEXT_FACTOR, "t0", "a6", "s4", "s8", "t4", TW_NEXT_WORD("t1", "a3"))                  \
            TW_SHIFT_COLUMN(CLIP, TW_NEXT_FACTOR, "t1", "a7", "s5", "s9", "t5", TW_NEXT_WORD("t2", "a3"))              \
                TW_SHIFT_COLUMN(CLIP, TW_NEXT_FACTOR, "t2", "s2", "s6", "s10", "t6", TW_NEXT_WORD("t3", "a3"))         \
                    TW_SHIFT_COLUMN(CLIP, "", "t3", "s3", "s7", "s11", "ra", "")

/* Floats: what tw_scale does; the column's own was there before the products. */
#define TW_SCALE_COLUMN(CLIP, factor, s0, s1, s2, s3)                                                                  \
    "fcvt.s.w ft4, " s0 "\nfcvt.s.w ft5, " s1 "\nfcvt.s.w ft6, " s2 "\nfcvt.s.w ft7, " s3 "\n"                         \
    "fmadd.s ft4, ft4, " factor ", %[magic]\nfmadd.s ft5, ft5, " factor ", %[magic]\n"                                 \
    "fmadd.s ft6, ft6, " factor ", %[magic]\nfmadd.s ft7, ft7, " factor ", %[magic]\n"                                 \
    "fmv.x.w " s0 ", ft4\nfmv.x.w " s1 ", ft5\nfmv.x.w " s2 ", ft6\nfmv.x.w " s3 ", ft7\n"                             \
    "add " s0 ", " s0 ", a4\nadd " s1 ", " s1 ", a4\nadd " s2 ", " s2 ", a4\nadd " s3 ", " s3 ", a4\n" CLIP(s0)        \
        CLIP(s1) CLIP(s2) CLIP(s3)
#define TW_SCALE_QUAD(CLIP)                                                                                            \
    "lw a4, 72(a0)\nlw s0, 60(a0)\nlw s1, 64(a0)\nlw a1, 68(a0)\n"                                                     \
    "flw fa0, 0(a3)\nflw fa1, 4(a3)\nflw fa2, 8(a3)\nflw fa3, 12(a3)\naddi a3, a3, 16\n" TW_SCALE_COLUMN(              \
        CLIP, "fa0", "a6", "s4", "s8", "t4") TW_SCALE_COLUMN(CLIP, "fa1", "a7", "s5", "s9", "t5")                      \
        TW_SCALE_COLUMN(CLIP, "fa2", "s2", "s6", "s10", "t6") TW_SCALE_COLUMN(CLIP, "fa3", "s3", "s7", "s11", "ra")

/* pv.packlo.b, pv.packhi.b; p.sw at a distance, and that moves on. */
#define TW_PACK_FOUR(s0, s1, s2, s3)                                                                                   \
    ".insn r 0x57, 1, 0x70, " s0 ", " s1 ", " s0 "\n.insn r 0x57, 1, 0x6C, " s0 ", " s3 ", " s2 "\n"
#define TW_PACK_QUAD                                                                                                   \
    TW_PACK_FOUR("a6", "a7", "s2", "s3")                                                                               \
    TW_PACK_FOUR("s4", "s5", "s6", "s7")                                                                               \
    TW_PACK_FOUR("s8", "s9", "s10", "s11")                                                                             \
    TW_PACK_FOUR("t4", "t5", "t6", "ra")
#define TW_STORE_QUAD                                                                                                  \
    TW_PACK_QUAD                                                                                                       \
    ".insn r 0x23, 6, 0x00, s0, gp, s4\n.insn r 0x23, 6, 0x00, s1, gp, s8\n.insn r 0x23, 6, 0x00, a1, gp, t4\n"        \
    ".insn s 0x2B, 2, a6, 4(gp)\n"
#define TW_FOUR_ROWS "lw s0, 0(a0)\nlw s1, 4(a0)\nlw a1, 8(a0)\nlw a2, 12(a0)\n"

#define TW_QUADS_BEGIN                                                                                                 \
    ".option push\n.option rvc\nfmv.w.x ft8, gp\nfmv.w.x ft9, tp\nlw tp, 16(a0)\nlw a3, 48(a0)\nlw gp, "               \
    "56(a0)\n" TW_FOUR_ROWS
#define TW_QUADS_AGAIN TW_STORE_QUAD TW_FOUR_ROWS "lw a4, 52(a0)\nbne a4, a3, 1b\n"
#define TW_QUADS_END "fmv.x.w gp, ft8\nfmv.x.w tp, ft9\n.option pop\n"
/* One run of at least two words for each pixel. One pointer goes from pixel to pixel, and what does not change is in
 * registers, some of it in those of floats. The first word makes sums, the others add to them: 97 instructions for four
 * columns besides 24 for each word behind the first. Words of the four pixels are often in one bank, as are those of the
 * other cores' pixels, so they are read five cycles apart: of some 600 orders that were tried in a model of the banks and
 * seven of them on the simulator, cores wait least for each other in this one. */
#define TW_MOVE_ON(to, from, step) ".insn r 0x0B, 7, 0x10, " to ", " from ", " step "\n"
#define TW_EVEN_PRODUCTS(CODE, BEFORE_LAST)                                                                            \
    TW_NEXT_WORD("t0", "a1")                                                                                           \
    TW_MOVE_ON("a4", "s0", "s1")                                                                                       \
    TW_NEXT_WORD("t1", "a1")                                                                                           \
    TW_NEXT_WORD("t2", "a1")                                                                                           \
    TW_SDOT(CODE, "a6", "a4", "t0")                                                                                    \
    TW_NEXT_WORD("t3", "a1")                                                                                           \
    TW_MOVE_ON("a5", "s0", "s1")                                                                                       \
    TW_SDOT(CODE, "a7", "a4", "t1")                                                                                    \
    TW_SDOT(CODE, "s2", "a4", "t2")                                                                                    \
    TW_SDOT(CODE, "s3", "a4", "t3")                                                                                    \
    TW_SDOT(CODE, "s4", "a5", "t0")                                                                                    \
    TW_MOVE_ON("a4", "s0", "s1")                                                                                       \
    TW_SDOT(CODE, "s5", "a5", "t1")                                                                                    \
    TW_SDOT(CODE, "s6", "a5", "t2")                                                                                    \
    TW_SDOT(CODE, "s7", "a5", "t3")                                                                                    \
    TW_SDOT(CODE, "s8", "a4", "t0")                                                                                    \
    TW_MOVE_ON("a5", "s0", "tp")                                                                                       \
    TW_SDOT(CODE, "s9", "a4", "t1")                                                                                    \
    TW_SDOT(CODE, "s10", "a4", "t2")                                                                                   \
    TW_SDOT(CODE, "s11", "a4", "t3")                                                                                   \
    BEFORE_LAST                                                                                                        \
    TW_SDOT(CODE, "t4", "a5", "t0")                                                                                    \
    TW_SDOT(CODE, "t5", "a5", "t1")                                                                                    \
    TW_SDOT(CODE, "t6", "a5", "t2")                                                                                    \
    TW_SDOT(CODE, "ra", "a5", "t3")
#define TW_STORE_ON(from, step) ".insn r 0x2B, 6, 0x00, " step ", gp, " from "\n"
/* Stores apart from each other, so that cores that come a cycle later do not meet in a bank. */
#define TW_EVEN_STORES                                                                                                 \
    TW_PACK_FOUR("a6", "a7", "s2", "s3")                                                                               \
    TW_STORE_ON("a6", "a0")                                                                                            \
    TW_PACK_FOUR("s4", "s5", "s6", "s7")                                                                               \
    TW_STORE_ON("s4", "a0")                                                                                            \
    TW_PACK_FOUR("s8", "s9", "s10", "s11")                                                                             \
    TW_STORE_ON("s8", "a0") TW_PACK_FOUR("t4", "t5", "t6", "ra") "fmv.x.w a4, ft5\n" TW_STORE_ON("t4", "a4")
#define TW_EVEN_LINE(SDOT, DOT, CLIP)                                                                                  \
    ".option push\n.option rvc\nfmv.w.x ft8, gp\nfmv.w.x ft9, tp\nfmv.w.x ft4, a0\n"                                   \
    "lw s0, 28(a0)\nlw gp, 32(a0)\nlw s1, 36(a0)\nlw tp, 40(a0)\nlw a2, 52(a0)\nflw ft5, 44(a0)\nflw ft6, "            \
    "48(a0)\nflw fa0, 56(a0)\n"                                                                                        \
    "fmv.w.x ft7, s0\n.balign 16\n1:\nlw a1, 0(a0)\nlw a3, 4(a0)\nlw a4, 8(a0)\nlw a0, 24(a0)\n.option norvc\n"        \
    ".insn i 0x7B, 4, x1, a4, 242\n" TW_EVEN_PRODUCTS(DOT, "fmv.x.w a4, ft6\n") TW_REPEAT("a4", "48")                  \
        TW_EVEN_PRODUCTS(SDOT, "") "fmv.x.w a5, fa0\n" TW_SHIFT_QUAD(CLIP) TW_EVEN_STORES                              \
        "fmv.x.w s0, ft7\n.option rvc\nfmv.x.w a0, ft4\nlw a4, 16(a0)\nlw a5, "                                        \
        "12(a0)\nadd s0, s0, a4\nadd gp, gp, a5\n"                                                                     \
        "lw a4, 20(a0)\nfmv.w.x ft7, s0\nbne s0, a4, 1b\n" TW_QUADS_END
#define TW_SHIFT_RUNS(SDOT, DOT, CLIP)                                                                                 \
    TW_QUADS_BEGIN                                                                                                     \
    "1:\nli a6, 0\nli a7, 0\nli s2, 0\nli s3, 0\n" TW_SAME_SUMS TW_ALL_RUNS(                                           \
        SDOT, "tp") ".option rvc\nlw a5, 80(a0)\nlw a2, 72(a0)\nlw s0, 60(a0)\nlw s1, 64(a0)\nlw a1, "                 \
                    "68(a0)\n" TW_SHIFT_QUAD(CLIP) TW_QUADS_AGAIN TW_QUADS_END
#define TW_SCALE_START                                                                                                 \
    TW_QUADS_BEGIN                                                                                                     \
    ".balign 16\n1:\n" TW_NEXT_WORD("a6", "a3") TW_NEXT_WORD("a7", "a3") TW_NEXT_WORD("s2", "a3")                      \
        TW_NEXT_WORD("s3", "a3") "lw a5, 20(a0)\n" TW_SAME_SUMS
#define TW_SCALE_RUN(SDOT, DOT, CLIP)                                                                                  \
    TW_SCALE_START TW_ONE_RUN(SDOT, "tp") ".option rvc\n" TW_SCALE_QUAD(CLIP) TW_QUADS_AGAIN TW_QUADS_END
#define TW_SCALE_RUNS(SDOT, DOT, CLIP)                                                                                 \
    TW_SCALE_START TW_ALL_RUNS(SDOT, "tp") ".option rvc\n" TW_SCALE_QUAD(CLIP) TW_QUADS_AGAIN TW_QUADS_END
#define TW_QUADS_TEXT(TEXT, ...)                                                                                       \
    __asm__ volatile(TEXT                                                                                              \
                     :                                                                                                 \
                     : __VA_ARGS__                                                                                     \
                     : "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", \
                       "s8", "s9", "s10", "s11", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "fa0", "fa1", "fa2", "fa3", \
                       "ft4", "ft5", "ft6", "ft7", "ft8", "ft9", "memory")
#define TW_QUADS_BYTES(TEXT, SDOT, DOT, ...)                                                                           \
    if (is_signed)                                                                                                     \
        TW_QUADS_TEXT(TEXT(SDOT, DOT, TW_CLIP_SIGNED), __VA_ARGS__);                                                   \
    else                                                                                                               \
        TW_QUADS_TEXT(TEXT(SDOT, DOT, TW_CLIP_UNSIGNED), __VA_ARGS__);
#define TW_MAGIC [magic] "f"(12582912.0f)
#define TW_DEFINE_QUADS(NAME, SDOT, DOT)                                                                               \
    static inline __attribute__((always_inline)) void NAME(struct tw_quads *given, const int single, const int shifts, \
                                                           const int is_signed) {                                      \
        register struct tw_quads *quads __asm__("a0") = given;                                                         \
        if (shifts) {                                                                                                  \
            TW_QUADS_BYTES(TW_SHIFT_RUNS, SDOT, DOT, "r"(quads))                                                       \
        } else if (single) {                                                                                           \
            TW_QUADS_BYTES(TW_SCALE_RUN, SDOT, DOT, "r"(quads), TW_MAGIC)                                              \
        } else {                                                                                                       \
            TW_QUADS_BYTES(TW_SCALE_RUNS, SDOT, DOT, "r"(quads), TW_MAGIC)                                             \
        }                                                                                                              \
    }
#define TW_DEFINE_EVEN(NAME, SDOT, DOT)                                                                                \
    static inline __attribute__((always_inline)) void NAME(struct tw_even *given, const int is_signed) {               \
        register struct tw_even *even __asm__("a0") = given;                                                           \
        TW_QUADS_BYTES(TW_EVEN_LINE, SDOT, DOT, "r"(even))                                                             \
    }
TW_DEFINE_QUADS(tw_quads_s8, TW_SDOT_S8, "0x4C")
TW_DEFINE_QUADS(tw_quads_u8, TW_SDOT_U8, "0x44")
TW_DEFINE_EVEN(tw_even_s8, TW_SDOT_S8, "0x4C")
TW_DEFINE_EVEN(tw_even_u8, TW_SDOT_U8, "0x44")

/* What is fused behind a kernel: what is added to a sum, or to its product with the factor of its channel; what is added at
 * last, or the shift. */
#define TW_FUSED_ADDED(e, bias, channel)                                                                               \
    (STORE_SHIFTS ? ((uint32_t)(bias) + (uint32_t)STORE_ADDED(e, channel)) * (uint32_t)STORE_FACTOR(e, channel) +      \
                        (uint32_t)STORE_OFFSET(e, channel)                                                             \
                  : (uint32_t)(bias) + (uint32_t)STORE_ADDED(e, channel))
#define TW_FUSED_LAST(e) (STORE_SHIFTS ? STORE_SHIFT(e) : (int32_t)((uint32_t)STORE_ZERO(e) - 0x4B400000u))
/* The same for up to TW_TABLED columns from `channel` on; B has their biases, or is NULL. Of the last few columns just
 * whole fours count. Floats take turns with what is added before, by fours; factors of integers are behind all of it. */
#define TW_TABLED 64
#define TW_TABULATE(quads, entries, e, B, channel, count)                                                              \
    do {                                                                                                               \
        int32_t *entry_ = (entries);                                                                                   \
        const int32_t *bias_ = (B);                                                                                    \
        const int behind_ = STORE_SHIFTS ? TW_TABLED : 4;                                                              \
        (quads)->table = entry_;                                                                                       \
        (quads)->end = entry_ + (STORE_SHIFTS ? 1 : 2) * ((count) & ~3);                                               \
        (quads)->last = TW_FUSED_LAST(e);                                                                              \
        (quads)->factors = behind_ * 4;                                                                                \
        for (int at_ = (channel), to_ = at_ + ((count) & ~3); at_ < to_; at_ += 4, entry_ += STORE_SHIFTS ? 4 : 8) {   \
            __typeof__(STORE_FACTOR(e, at_)) factor_[4];                                                               \
            int32_t added_[4];                                                                                         \
            TW_UNROLL for (int i_ = 0; i_ < 4; i_++) factor_[i_] = STORE_FACTOR(e, at_ + i_);                          \
            TW_UNROLL for (int i_ = 0; i_ < 4; i_++) {                                                                 \
                const int32_t more_ = bias_ ? *bias_++ : 0;                                                            \
                added_[i_] = (int32_t)TW_FUSED_ADDED(e, more_, at_ + i_);                                              \
            }                                                                                                          \
            memcpy(entry_, added_, 16);                                                                                \
            memcpy(entry_ + behind_, factor_, 16);                                                                     \
        }                                                                                                              \
    } while (0)
/* The same without a bias, where the numbers lie in lists already. */
#define TW_TAKE_LISTS(quads, e, channel, count)                                                                        \
    do {                                                                                                               \
        const int32_t *const added_ = STORE_OFFSETS(e) + (channel);                                                    \
        (quads)->table = added_;                                                                                       \
        (quads)->end = added_ + ((count) & ~3);                                                                        \
        (quads)->last = STORE_SHIFT(e);                                                                                \
        (quads)->factors = (int32_t)((const char *)(STORE_FACTORS(e) + (channel)) - (const char *)added_);             \
    } while (0)

#endif
