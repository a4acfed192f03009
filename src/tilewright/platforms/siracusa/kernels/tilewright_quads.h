/* Products of four rows of bytes with columns by fours that become bytes at once: sums stay in registers until they are
 * scaled back, and the loop over columns just fits the 512 bytes of a core's cache. */
#ifndef TILEWRIGHT_QUADS_H
#define TILEWRIGHT_QUADS_H

#include "tilewright_dot.h"

#include <string.h>

/* Four rows, and where their results go: those of the first one to `y`, of the others `apart` bytes behind it. `table` has
 * what is added to four columns, then their factors, up to `end`. The assembler text below knows where each member is. */
struct tw_quads {
    struct tw_runs runs;
    const void *table, *end;
    void *y;
    int32_t apart[3];
    int32_t last; /* the shift, or what is added at last */
    int32_t more; /* words of a run behind its first */
};

#define TW_CLIP_SIGNED(sum) ".insn r 0x33, 1, 0x0A, " sum ", " sum ", x8\n"          /* p.clip */
#define TW_CLIP_UNSIGNED(sum) ".insn r 0x33, 2, 0x0A, " sum ", " sum ", x9\n"        /* p.clipu */
#define TW_ROUND_SHIFT(sum, added) ".insn r 0x5B, 6, 0x20, " sum ", " added ", a4\n" /* p.addRNr */

/* Integers: (sum * factor + added) >> shift. */
#define TW_SHIFT_COLUMN(CLIP, factor, added, s0, s1, s2, s3)                                                           \
    "mul " s0 ", " s0 ", " factor "\nmul " s1 ", " s1 ", " factor "\nmul " s2 ", " s2 ", " factor "\n"                 \
    "mul " s3 ", " s3 ", " factor "\n" TW_ROUND_SHIFT(s0, added) TW_ROUND_SHIFT(s1, added) TW_ROUND_SHIFT(s2, added)   \
        TW_ROUND_SHIFT(s3, added) CLIP(s0) CLIP(s1) CLIP(s2) CLIP(s3)
#define TW_SHIFT_QUAD(CLIP)                                                                                            \
    TW_NEXT_WORD("t0", "a3")                                                                                           \
    TW_NEXT_WORD("t1", "a3")                                                                                           \
    TW_NEXT_WORD("t2", "a3")                                                                                           \
    TW_NEXT_WORD("t3", "a3")                                                                                           \
    TW_NEXT_WORD("a2", "a3")                                                                                           \
    TW_NEXT_WORD("a5", "a3")                                                                                           \
    "lw a4, 72(a0)\nlw s0, 60(a0)\n" TW_SHIFT_COLUMN(CLIP, "a2", "t0", "a6", "s4", "s8", "t4")                         \
        TW_NEXT_WORD("a2", "a3") "lw s1, 64(a0)\n" TW_SHIFT_COLUMN(CLIP, "a5", "t1", "a7", "s5", "s9", "t5")           \
            TW_NEXT_WORD("a5", "a3") "lw a1, 68(a0)\n" TW_SHIFT_COLUMN(CLIP, "a2", "t2", "s2", "s6", "s10", "t6")      \
                TW_SHIFT_COLUMN(CLIP, "a5", "t3", "s3", "s7", "s11", "ra")

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
#define TW_STORE_QUAD                                                                                                  \
    TW_PACK_FOUR("a6", "a7", "s2", "s3")                                                                               \
    TW_PACK_FOUR("s4", "s5", "s6", "s7")                                                                               \
    TW_PACK_FOUR("s8", "s9", "s10", "s11")                                                                             \
    TW_PACK_FOUR("t4", "t5", "t6", "ra")                                                                               \
    ".insn r 0x23, 6, 0x00, s0, gp, s4\n.insn r 0x23, 6, 0x00, s1, gp, "                                               \
    "s8\n.insn r 0x23, 6, 0x00, a1, gp, t4\n"                                                                          \
    ".insn s 0x2B, 2, a6, 4(gp)\n"
#define TW_FOUR_ROWS "lw s0, 0(a0)\nlw s1, 4(a0)\nlw a1, 8(a0)\nlw a2, 12(a0)\n"

#define TW_QUADS_BEGIN                                                                                                 \
    ".option push\n.option rvc\nfmv.w.x ft8, gp\nfmv.w.x ft9, tp\nlw tp, 16(a0)\nlw a3, 48(a0)\nlw gp, "               \
    "56(a0)\n" TW_FOUR_ROWS
#define TW_QUADS_AGAIN TW_STORE_QUAD TW_FOUR_ROWS "lw a4, 52(a0)\nbne a4, a3, 1b\n"
#define TW_QUADS_END "fmv.x.w gp, ft8\nfmv.x.w tp, ft9\n.option pop\n"
/* One run of at least two words: 126 instructions for four columns besides those of the loop over words. The first word
 * makes sums, the others add to them. */
#define TW_SHIFT_RUN(SDOT, DOT, CLIP)                                                                                  \
    TW_QUADS_BEGIN                                                                                                     \
    "lw a4, 52(a0)\nsub a4, a4, a3\nsrli a4, a4, 5\n.balign 16\n.option norvc\nnop\nnop\nnop\n"                        \
    ".insn i 0x7B, 4, x1, a4, 252\n" TW_PRODUCTS(DOT, "tp", "lw a4, 76(a0)\n") TW_REPEAT("a4", "48")                   \
        TW_PRODUCTS(SDOT, "tp", "") TW_SHIFT_QUAD(CLIP) TW_STORE_QUAD TW_FOUR_ROWS TW_QUADS_END
#define TW_SHIFT_RUNS(SDOT, DOT, CLIP)                                                                                 \
    TW_QUADS_BEGIN                                                                                                     \
    "1:\nli a6, 0\nli a7, 0\nli s2, 0\nli s3, 0\n" TW_SAME_SUMS TW_ALL_RUNS(SDOT, "tp") ".option rvc\n" TW_SHIFT_QUAD( \
        CLIP) TW_QUADS_AGAIN TW_QUADS_END
#define TW_SCALE_START                                                                                                 \
    TW_QUADS_BEGIN                                                                                                     \
    ".balign 16\n1:\n" TW_NEXT_WORD("a6", "a3") TW_NEXT_WORD("a7", "a3") TW_NEXT_WORD("s2", "a3")                      \
        TW_NEXT_WORD("s3", "a3") "lw a5, 20(a0)\n" TW_SAME_SUMS
#define TW_SCALE_RUN(SDOT, DOT, CLIP)                                                                                  \
    TW_SCALE_START TW_ONE_RUN(SDOT, "tp") ".option rvc\n" TW_SCALE_QUAD(CLIP) TW_QUADS_AGAIN TW_QUADS_END
#define TW_SCALE_RUNS(SDOT, DOT, CLIP)                                                                                 \
    TW_SCALE_START TW_ALL_RUNS(SDOT, "tp") ".option rvc\n" TW_SCALE_QUAD(CLIP) TW_QUADS_AGAIN TW_QUADS_END
#define TW_QUADS_TEXT(TEXT)                                                                                            \
    __asm__ volatile(TEXT                                                                                              \
                     :                                                                                                 \
                     : "r"(quads), [magic] "f"(12582912.0f)                                                            \
                     : "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", \
                       "s8", "s9", "s10", "s11", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "fa0", "fa1", "fa2", "fa3", \
                       "ft4", "ft5", "ft6", "ft7", "ft8", "ft9", "memory")
#define TW_QUADS_BYTES(TEXT, SDOT, DOT)                                                                                \
    if (is_signed)                                                                                                     \
        TW_QUADS_TEXT(TEXT(SDOT, DOT, TW_CLIP_SIGNED));                                                                \
    else                                                                                                               \
        TW_QUADS_TEXT(TEXT(SDOT, DOT, TW_CLIP_UNSIGNED));
#define TW_DEFINE_QUADS(NAME, SDOT, DOT)                                                                               \
    static inline __attribute__((always_inline)) void NAME(struct tw_quads *given, const int single, const int shifts, \
                                                           const int is_signed) {                                      \
        register struct tw_quads *quads __asm__("a0") = given;                                                         \
        if (shifts && single) {                                                                                        \
            TW_QUADS_BYTES(TW_SHIFT_RUN, SDOT, DOT)                                                                    \
        } else if (shifts) {                                                                                           \
            TW_QUADS_BYTES(TW_SHIFT_RUNS, SDOT, DOT)                                                                   \
        } else if (single) {                                                                                           \
            TW_QUADS_BYTES(TW_SCALE_RUN, SDOT, DOT)                                                                    \
        } else {                                                                                                       \
            TW_QUADS_BYTES(TW_SCALE_RUNS, SDOT, DOT)                                                                   \
        }                                                                                                              \
    }
TW_DEFINE_QUADS(tw_quads_s8, TW_SDOT_S8, "0x4C")
TW_DEFINE_QUADS(tw_quads_u8, TW_SDOT_U8, "0x44")

/* What is fused behind a kernel: what is added to a sum, or to its product with the factor of its channel; what is added at
 * last, or the shift. */
#define TW_FUSED_ADDED(e, bias, channel)                                                                               \
    (STORE_SHIFTS ? ((uint32_t)(bias) + (uint32_t)STORE_ADDED(e, channel)) * (uint32_t)STORE_FACTOR(e, channel) +      \
                        (uint32_t)STORE_OFFSET(e, channel)                                                             \
                  : (uint32_t)(bias) + (uint32_t)STORE_ADDED(e, channel))
#define TW_FUSED_LAST(e) (STORE_SHIFTS ? STORE_SHIFT(e) : (int32_t)((uint32_t)STORE_ZERO(e) - 0x4B400000u))
/* The same for up to TW_TABLED columns from `channel` on; B has their biases, or is NULL. Of the last few columns just
 * whole fours count. */
#define TW_TABLED 64
#define TW_TABULATE(quads, entries, e, B, channel, count)                                                              \
    do {                                                                                                               \
        int32_t *entry_ = (entries);                                                                                   \
        const int32_t *bias_ = (B);                                                                                    \
        (quads)->table = entry_;                                                                                       \
        (quads)->end = entry_ + 2 * ((count) & ~3);                                                                    \
        (quads)->last = TW_FUSED_LAST(e);                                                                              \
        for (int at_ = (channel), to_ = at_ + ((count) & ~3); at_ < to_; at_ += 4, entry_ += 8)                        \
            TW_UNROLL for (int i_ = 0; i_ < 4; i_++) {                                                                 \
                const __typeof__(STORE_FACTOR(e, at_)) factor_ = STORE_FACTOR(e, at_ + i_);                            \
                const int32_t more_ = bias_ ? *bias_++ : 0;                                                            \
                entry_[i_] = (int32_t)TW_FUSED_ADDED(e, more_, at_ + i_);                                              \
                memcpy(entry_ + 4 + i_, &factor_, 4);                                                                  \
            }                                                                                                          \
    } while (0)

#endif
