/* Depthwise convolution of 3 x 3 whose sums become bytes at once. */
#ifndef TILEWRIGHT_PAIRS_H
#define TILEWRIGHT_PAIRS_H

#include "tilewright_quads.h"

/* One channel of two lines of results, by fours along the lines: each word of columns is seen by three pixels of both. The
 * first line has its filter in w, the second one in u; results become bytes as tilewright_quads.h tells. */
struct tw_pair {
    uint32_t w[3], u[3];
    char *y, *second;
    int next;
    int32_t added, last;
    union {
        int32_t integer;
        float real;
    } factor;
};
#define TW_PUT_BYTE(sum, line) ".insn r 0x2B, 4, 0x00, %[next], %[" line "], " sum "\n" /* p.sb */
#define TW_SHIFT_SUM(SDOT, DOT, CLIP, v0, v1, v2, w, line)                                                             \
    TW_SDOT(DOT, "t0", v0, "%[" w "0]")                                                                                \
    TW_SDOT(SDOT, "t0", v1, "%[" w "1]")                                                                               \
    TW_SDOT(SDOT, "t0", v2, "%[" w "2]")                                                                               \
    "mul t0, t0, %[factor]\n.insn r 0x5B, 6, 0x20, t0, %[added], %[last]\n" CLIP("t0") TW_PUT_BYTE("t0", line)
#define TW_SCALE_SUM(SDOT, DOT, CLIP, v0, v1, v2, w, line)                                                             \
    "mv t0, %[added]\n" TW_SDOT(SDOT, "t0", v0, "%[" w "0]") TW_SDOT(SDOT, "t0", v1, "%[" w "1]")                      \
        TW_SDOT(SDOT, "t0", v2, "%[" w "2]") "fcvt.s.w ft0, t0\nfmadd.s ft0, ft0, %[factor], %[magic]\n"               \
                                             "fmv.x.w t0, ft0\nadd t0, t0, %[last]\n" CLIP("t0")                       \
                                                 TW_PUT_BYTE("t0", line)
#define TW_PAIR_OF_PIXELS(SUM, SDOT, DOT, CLIP, v0, v1, v2)                                                            \
    SUM(SDOT, DOT, CLIP, v0, v1, v2, "w", "y") SUM(SDOT, DOT, CLIP, v0, v1, v2, "u", "y2")
#define TW_COLUMN(word) ".insn i 0x0B, 2, " word ", 16(%[t])\n"
/* Two pixels, again and again: longer code would not stay in a core's cache. */
#define TW_PAIR_TWOS(SUM, HALFWORDS, SDOT, DOT, CLIP)                                                                  \
    TW_REPEAT("%[twos]", HALFWORDS)                                                                                    \
    TW_COLUMN("t1")                                                                                                    \
    TW_COLUMN("t2")                                                                                                    \
    TW_PAIR_OF_PIXELS(SUM, SDOT, DOT, CLIP, "%[v0]", "%[v1]", "t1")                                                    \
    TW_PAIR_OF_PIXELS(SUM, SDOT, DOT, CLIP, "%[v1]", "t1", "t2") "mv %[v0], t1\nmv %[v1], t2\n"
#define TW_PAIR_TEXT(TEXT, FACTOR)                                                                                     \
    __asm__ volatile(                                                                                                  \
        ".option push\n.option norvc\n" TEXT ".option pop\n"                                                           \
        : [t] "+r"(t), [v0] "+r"(v0), [v1] "+r"(v1), [y] "+r"(y), [y2] "+r"(second)                                    \
        : [w0] "r"(p->w[0]), [w1] "r"(p->w[1]), [w2] "r"(p->w[2]), [u0] "r"(p->u[0]), [u1] "r"(p->u[1]),               \
          [u2] "r"(p->u[2]), [next] "r"(p->next), [added] "r"(p->added), [last] "r"(p->last), [twos] "r"(twos), FACTOR \
        : "t0", "t1", "t2", "ft0", "memory")
#define TW_INTEGER_FACTOR [factor] "r"(p->factor.integer)
#define TW_REAL_FACTOR [factor] "f"(p->factor.real), [magic] "f"(12582912.0f)
#define TW_PAIR_BYTES(PIXELS, SDOT, DOT)                                                                               \
    if (shifts && is_signed)                                                                                           \
        TW_PAIR_TEXT(PIXELS(TW_SHIFT_SUM, "64", SDOT, DOT, TW_CLIP_SIGNED), TW_INTEGER_FACTOR);                        \
    else if (shifts)                                                                                                   \
        TW_PAIR_TEXT(PIXELS(TW_SHIFT_SUM, "64", SDOT, DOT, TW_CLIP_UNSIGNED), TW_INTEGER_FACTOR);                      \
    else if (is_signed)                                                                                                \
        TW_PAIR_TEXT(PIXELS(TW_SCALE_SUM, "88", SDOT, DOT, TW_CLIP_SIGNED), TW_REAL_FACTOR);                           \
    else                                                                                                               \
        TW_PAIR_TEXT(PIXELS(TW_SCALE_SUM, "88", SDOT, DOT, TW_CLIP_UNSIGNED), TW_REAL_FACTOR);
#define TW_DEFINE_PAIR(NAME, SDOT, DOT)                                                                                \
    static inline __attribute__((always_inline)) void NAME(const struct tw_pair *p, const uint32_t *t, int twos,       \
                                                           const int shifts, const int is_signed) {                    \
        uint32_t v0 = t[0], v1 = t[4];                                                                                 \
        char *y = p->y, *second = p->second;                                                                           \
        t += 8;                                                                                                        \
        TW_PAIR_BYTES(TW_PAIR_TWOS, SDOT, DOT)                                                                         \
    }
TW_DEFINE_PAIR(tw_pair_s8, TW_SDOT_S8, "0x4C")
TW_DEFINE_PAIR(tw_pair_u8, TW_SDOT_U8, "0x44")

#endif
