/* What convolutions share: blocks of four pixels and four channels, of which each core has some that follow each other, and
 * their sums over a list of runs of bytes, with Xpulpimg. */
#ifndef TILEWRIGHT_RUNS_H
#define TILEWRIGHT_RUNS_H

#include "tilewright_pool.h"

/* The blocks of a core. The four of a tile have some that lie far apart: their words are in different groups. */
struct tw_pool_share {
    int begin, end;
};
static inline struct tw_pool_share tw_pool_share(int blocks, int part, int parts) {
    const int place = parts & 3 ? part : (part & 3) * (parts >> 2) + (part >> 2), most = (blocks + parts - 1) / parts;
    const int begin = place * most, end = begin + most;
    return (struct tw_pool_share){begin, end < blocks ? end : blocks};
}

/* Where windows of an image and their results lie. */
struct tw_pool_image {
    int N, OH, OW, strides_0, strides_1, pads_0, pads_1, X_s0, X_s1, X_s2, Y_s0, Y_s1, Y_s2;
};
#define TW_POOL_IMAGE {N, OH, OW, strides_0, strides_1, pads_0, pads_1, X_s0, X_s1, X_s2, Y_s0, Y_s1, Y_s2}
static inline int tw_pool_fours(const struct tw_pool_image *image) {
    return (image->N * image->OH * image->OW + 3) >> 2;
}

/* Up to four pixels: how many; the first row and column of their windows, and where of the image these lie; and the places of
 * the results. What is not there is as the last one. */
struct tw_pool_pixels {
    int count, row[4], col[4], from[4], to[4];
};
/* The last few of all fours have three pixels, so that none is left with one: its words would be read four times. */
static inline __attribute__((always_inline)) void tw_pool_find(const struct tw_pool_image *image, int four,
                                                               struct tw_pool_pixels *pixels) {
    const int all = image->N * image->OH * image->OW, whole = all - 3 * tw_pool_fours(image);
    const int begin = four < whole ? 4 * four : 3 * four + whole > 0 ? 3 * four + whole : 0;
    const int end = four < whole ? begin + 4 : 3 * four + 3 + whole;
    int ow = begin % image->OW, line = begin / image->OW, oh = line % image->OH, n = line / image->OH;
    pixels->count = end - begin;
    for (int i = 0; i < 4; i++) {
        const int row = oh * image->strides_0 - image->pads_0, col = ow * image->strides_1 - image->pads_1;
        pixels->row[i] = row;
        pixels->col[i] = col;
        pixels->from[i] = n * image->X_s0 + row * image->X_s1 + col * image->X_s2;
        pixels->to[i] = n * image->Y_s0 + oh * image->Y_s1 + ow * image->Y_s2;
        if (i + 1 < pixels->count && ++ow == image->OW) {
            ow = 0;
            if (++oh == image->OH) {
                oh = 0;
                n++;
            }
        }
    }
}

/* Words of four pixels, with those of four channels, which take turns: `bytes` of these, `b` behind where they begin. */
struct tw_pool_run {
    const void *a[4];
    int b, bytes;
};

/* The list is in tp; a run of no bytes ends it. All four pixels begin with the same four sums. */
#define TW_RUNS_TEXT(CODE)                                                                                             \
    "addi sp, sp, -16\nsw a0, 0(sp)\nsw tp, 4(sp)\nsw a3, 8(sp)\nmv tp, a1\n"                                          \
    "lw s0, 0(a2)\nlw s1, 4(a2)\nlw s2, 8(a2)\nlw s3, 12(a2)\n"                                                        \
    "mv s4, s0\nmv s8, s0\nmv a7, s0\nmv s5, s1\nmv s9, s1\nmv ra, s1\n"                                               \
    "mv s6, s2\nmv s10, s2\nmv gp, s2\nmv s7, s3\nmv s11, s3\nmv a0, s3\nj 2f\n.balign 32\n1:\n" TW_POOL_STEP(         \
        CODE) "bne a5, a6, 1b\n2:\n"                                                                                   \
              "lw a6, 20(tp)\nlw a5, 16(tp)\nlw t0, 8(sp)\nlw a1, 0(tp)\nlw a2, 4(tp)\nlw a3, 8(tp)\n"                 \
              "lw a4, 12(tp)\naddi tp, tp, 24\nbeqz a6, 3f\nadd a5, a5, t0\nadd a6, a6, a5\nj 1b\n3:\n"                \
              "lw t0, 0(sp)\nlw tp, 4(sp)\naddi sp, sp, 16\n"                                                          \
              "sw s0, 0(t0)\nsw s1, 4(t0)\nsw s2, 8(t0)\nsw s3, 12(t0)\nsw s4, 16(t0)\nsw s5, 20(t0)\n"                \
              "sw s6, 24(t0)\nsw s7, 28(t0)\nsw s8, 32(t0)\nsw s9, 36(t0)\nsw s10, 40(t0)\nsw s11, 44(t0)\n"           \
              "sw a7, 48(t0)\nsw ra, 52(t0)\nsw gp, 56(t0)\nsw a0, 60(t0)\n"
#define TW_DEFINE_RUNS(NAME, CODE)                                                                                     \
    static __attribute__((noinline, unused)) void NAME(int32_t *sums, const struct tw_pool_run *runs,                  \
                                                       const int32_t *first, const int8_t *weights) {                  \
        register int32_t *to __asm__("a0") = sums;                                                                     \
        register const struct tw_pool_run *list __asm__("a1") = runs;                                                  \
        register const int32_t *begin __asm__("a2") = first;                                                           \
        register const int8_t *b __asm__("a3") = weights;                                                              \
        __asm__ volatile(TW_RUNS_TEXT(CODE)                                                                            \
                         : "+r"(to), "+r"(list), "+r"(begin), "+r"(b)                                                  \
                         :                                                                                             \
                         : "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a4", "a5", "a6", "a7", "s0", "s1", "s2",   \
                           "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "memory");                          \
    }
TW_DEFINE_RUNS(tw_pool_runs_s8, TW_POOL_S8)
TW_DEFINE_RUNS(tw_pool_runs_u8, TW_POOL_U8)

/* Lets the first of `count` runs begin behind `skipped` bytes, which then come last; ends the list. */
static inline void tw_pool_turn(struct tw_pool_run *runs, int count, int skipped) {
    if (skipped) {
        runs[count] = runs[0];
        runs[count++].bytes = skipped;
        for (int i = 0; i < 4; i++)
            runs->a[i] = (const char *)runs->a[i] + skipped / 4;
        runs->b += skipped;
        runs->bytes -= skipped;
    }
    runs[count].bytes = 0;
}

/* What the sums of up to four channels begin with. */
static inline const int32_t *tw_pool_first(const int32_t *bias, int channel, int count, int32_t *panel) {
    if (bias && count == 4)
        return bias + channel;
    for (int j = 0; j < 4; j++)
        panel[j] = bias && j < count ? bias[channel + j] : 0;
    return panel;
}

#endif
