/* Depthwise convolution of bytes: four rows of one channel make a word, so that a column of the filter is one product of
 * XpulpV2. */
#ifndef TILEWRIGHT_COLUMNS_H
#define TILEWRIGHT_COLUMNS_H

#include "tilewright_dot.h"

/* p.lw that moves its pointer by a register. */
#define TW_LOAD_STRIDED(word, from, stride)                                                                            \
    __asm__ volatile(".insn r 0x0B, 7, 0x10, %0, %1, %2" : "=r"(word), "+r"(from) : "r"(stride) : "memory")
/* pv.shuffle2.b: each byte of the selector names one of the four of `low` (0 to 3) or of `high` (4 to 7). */
static inline uint32_t tw_shuffle(uint32_t low, uint32_t high, uint32_t selector) {
    __asm__(".insn r 0x57, 1, 0x64, %0, %1, %2" : "+r"(low) : "r"(high), "r"(selector));
    return low;
}
/* They stay where they are: the compiler would take some out of a loop, and with them registers. */
static inline int32_t tw_sdot_s8(int32_t sum, uint32_t a, uint32_t b) {
    __asm__ volatile(".insn r 0x57, 1, " TW_SDOT_S8 ", %0, %1, %2" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}
static inline int32_t tw_sdot_u8(int32_t sum, uint32_t a, uint32_t b) {
    __asm__ volatile(".insn r 0x57, 1, " TW_SDOT_U8 ", %0, %1, %2" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

/* Up to four rows of an image from some column on. Rows outside the image are one word of zero points, with stride 0. */
struct tw_four_rows {
    const char *x[4];
    int stride[4];
};

/* Columns that are outside the image, for some channels `pitch` words apart. */
static inline void tw_outside_columns(int channels, int begin, int end, uint32_t outside, uint32_t *to, int pitch) {
    for (int c = 0; c < channels; c++, to += pitch) {
        for (int i = 0; i < begin; i++)
            to[i] = outside;
        for (int i = end; i < pitch; i++)
            to[i] = outside;
    }
}

/* Columns [begin, end) as words, for the four channels from `channel` on, `pitch` words apart. With three rows the fourth
 * byte is anything. */
static __attribute__((noinline, unused)) void tw_columns(const struct tw_four_rows *rows, int channel, int four,
                                                         int begin, int end, uint32_t *to, int pitch) {
    const int s0 = rows->stride[0], s1 = rows->stride[1], s2 = rows->stride[2], s3 = rows->stride[3];
    const char *x0 = rows->x[0] + (s0 ? channel : 0), *x1 = rows->x[1] + (s1 ? channel : 0);
    const char *x2 = rows->x[2] + (s2 ? channel : 0), *x3 = rows->x[3] + (s3 ? channel : 0);
    uint32_t *c0 = to + begin, *c1 = c0 + pitch, *c2 = c1 + pitch, *c3 = c2 + pitch;
    uint32_t a, b, c, d;
    if (four) {
        for (int i = begin; i < end; i++) {
            TW_LOAD_STRIDED(a, x0, s0);
            TW_LOAD_STRIDED(b, x1, s1);
            TW_LOAD_STRIDED(c, x2, s2);
            TW_LOAD_STRIDED(d, x3, s3);
            const uint32_t low = tw_shuffle(a, b, 0x05010400u), high = tw_shuffle(a, b, 0x07030602u);
            const uint32_t low2 = tw_shuffle(c, d, 0x05010400u), high2 = tw_shuffle(c, d, 0x07030602u);
            *c0++ = tw_shuffle(low, low2, 0x05040100u);
            *c1++ = tw_shuffle(low, low2, 0x07060302u);
            *c2++ = tw_shuffle(high, high2, 0x05040100u);
            *c3++ = tw_shuffle(high, high2, 0x07060302u);
        }
    } else {
        for (int i = begin; i < end; i++) {
            TW_LOAD_STRIDED(a, x0, s0);
            TW_LOAD_STRIDED(b, x1, s1);
            TW_LOAD_STRIDED(c, x2, s2);
            const uint32_t low = tw_shuffle(a, b, 0x05010400u), high = tw_shuffle(a, b, 0x07030602u);
            *c0++ = tw_shuffle(low, c, 0x04040100u);
            *c1++ = tw_shuffle(low, c, 0x05050302u);
            *c2++ = tw_shuffle(high, c, 0x06060100u);
            *c3++ = tw_shuffle(high, c, 0x07070302u);
        }
    }
}

/* The same for the last few channels, byte by byte: a word would reach beyond the image. */
static __attribute__((noinline, unused)) void tw_few_columns(const struct tw_four_rows *rows, int channel, int channels,
                                                             int begin, int end, uint32_t *to, int pitch, int step) {
    for (int i = begin; i < end; i++) {
        for (int c = 0; c < channels; c++) {
            uint32_t word = 0;
            for (int row = 0; row < 4; row++)
                word |= (uint32_t)(uint8_t)
                            rows->x[row][rows->stride[row] ? (i - begin) * rows->stride[row] + channel + c : 0]
                        << (8 * row);
            to[c * pitch + i * step] = word;
        }
    }
}

/* One axis of an image and of the result: elements, how far they lie apart, and how a filter walks along it. */
struct tw_axis {
    int outputs, inputs, in_step, out_step, stride, pad, dilation;
};

#define TW_STRIDED(word, from, stride) ".insn r 0x0B, 7, 0x10, " word ", %[" from "], %[" stride "]\n"
#define TW_SHUFFLE(low, high, selector) ".insn r 0x57, 1, 0x64, " low ", " high ", %[" selector "]\n"
#define TW_HALVES(word, high, low) ".insn r 0x57, 0, 0x68, " word ", " high ", " low "\n"
#define TW_PUT_WORD(word) ".insn s 0x2B, 2, " word ", 4(%[to])\n"
/* Three rows of words side by side, column by column; strides are in bytes. */
static inline void tw_columns_of_three(const struct tw_four_rows *rows, int count, float *to) {
    const char *x0 = rows->x[0], *x1 = rows->x[1], *x2 = rows->x[2];
    if (count > 0)
        __asm__ volatile(
            ".option push\n.option norvc\n" TW_REPEAT("%[count]", "12") TW_STRIDED("t0", "x0", "s0")
                TW_STRIDED("t1", "x1", "s1") TW_STRIDED("t2", "x2", "s2") TW_PUT_WORD("t0") TW_PUT_WORD("t1")
                    TW_PUT_WORD("t2") ".option pop\n"
            : [x0] "+r"(x0), [x1] "+r"(x1), [x2] "+r"(x2), [to] "+r"(to)
            : [s0] "r"(rows->stride[0]), [s1] "r"(rows->stride[1]), [s2] "r"(rows->stride[2]), [count] "r"(count)
            : "t0", "t1", "t2", "memory");
}

/* Lines of results, alone or in pairs: how many pixels, which of the `width` columns of each are inside the image, words
 * between the columns of pixels and between those of a filter, elements to the next pixel, to the second line of a pair (or
 * 0) and to the next one. */
struct tw_slide {
    int lines, pixels, width, begin, end, step, dilation, next, second, jump, turned;
};

/* Three words of three bytes and a zero: rows become columns. */
static inline void tw_turn_three(uint32_t *w) {
    const uint32_t low = tw_shuffle(w[0], w[1], 0x05010400u), high = tw_shuffle(w[0], w[1], 0x07030602u);
    const uint32_t last = w[2];
    w[0] = tw_shuffle(low, last, 0x07040100u);
    w[1] = tw_shuffle(low, last, 0x07050302u);
    w[2] = tw_shuffle(high, last, 0x07060100u);
}

/* Columns of four rows as words, those of four channels side by side. */
static inline void tw_turned_columns(const struct tw_four_rows *rows, int channel, int count, uint32_t *to) {
    const int s0 = rows->stride[0], s1 = rows->stride[1], s2 = rows->stride[2], s3 = rows->stride[3];
    const char *x0 = rows->x[0] + (s0 ? channel : 0), *x1 = rows->x[1] + (s1 ? channel : 0);
    const char *x2 = rows->x[2] + (s2 ? channel : 0), *x3 = rows->x[3] + (s3 ? channel : 0);
    if (count <= 0)
        return;
    __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[count]", "36") TW_STRIDED("t0", "x0", "s0")
                         TW_STRIDED("t1", "x1", "s1") TW_STRIDED("t2", "x2", "s2")
                             TW_STRIDED("t3", "x3", "s3") "mv t4, t0\n" TW_SHUFFLE("t4", "t1", "pairs")
                                 TW_SHUFFLE("t0", "t1", "others") "mv t5, t2\n" TW_SHUFFLE("t5", "t3", "pairs")
                                     TW_SHUFFLE("t2", "t3", "others") TW_HALVES("t1", "t5", "t4") TW_PUT_WORD("t1")
                                         TW_SHUFFLE("t4", "t5", "upper") TW_PUT_WORD("t4") TW_HALVES("t1", "t2", "t0")
                                             TW_PUT_WORD("t1") TW_SHUFFLE("t0", "t2", "upper")
                                                 TW_PUT_WORD("t0") ".option pop\n"
                     : [x0] "+r"(x0), [x1] "+r"(x1), [x2] "+r"(x2), [x3] "+r"(x3), [to] "+r"(to)
                     : [s0] "r"(s0), [s1] "r"(s1), [s2] "r"(s2), [s3] "r"(s3), [count] "r"(count),
                       [pairs] "r"(0x05010400u), [others] "r"(0x07030602u), [upper] "r"(0x07060302u)
                     : "t0", "t1", "t2", "t3", "t4", "t5", "memory");
}

/* What the pixels of a line have in common: filter columns, blocks of four filter rows, and how far their words lie apart;
 * `pixels` is a multiple of 4. */
struct tw_column_dots {
    int pixels, columns, blocks, stride, dilation, pitch;
};

/* out[i * 16] = bias + the products of three columns, each next to the last one, for 4 * quads pixels. */
#define TW_DOT_THREE(CODE, sum, v0, v1, v2)                                                                            \
    "mv " sum ", %[bias]\n" TW_SDOT(CODE, sum, v0, "%[w0]") TW_SDOT(CODE, sum, v1, "%[w1]")                            \
        TW_SDOT(CODE, sum, v2, "%[w2]") ".insn s 0x2B, 2, " sum ", 64(%[out])\n"
#define TW_DEFINE_COLUMN_DOTS(NAME, CODE, SDOT)                                                                        \
    static inline void NAME##_3(const uint32_t *t, const uint32_t *w, int32_t bias, int quads, int32_t *out) {         \
        uint32_t v0 = t[0], v1 = t[1];                                                                                 \
        t += 2;                                                                                                        \
        __asm__ volatile(                                                                                              \
            ".option push\n.option norvc\n" TW_REPEAT("%[quads]", "52") TW_NEXT_WORD("t0", "%[t]")                     \
                TW_NEXT_WORD("t1", "%[t]") TW_NEXT_WORD("t2", "%[t]") TW_NEXT_WORD("t3", "%[t]")                       \
                    TW_DOT_THREE(CODE, "t4", "%[v0]", "%[v1]", "t0") TW_DOT_THREE(CODE, "t5", "%[v1]", "t0", "t1")     \
                        TW_DOT_THREE(CODE, "t6", "t0", "t1", "t2")                                                     \
                            TW_DOT_THREE(CODE, "t4", "t1", "t2", "t3") "mv %[v0], t2\nmv %[v1], t3\n.option pop\n"     \
            : [t] "+r"(t), [out] "+r"(out), [v0] "+r"(v0), [v1] "+r"(v1)                                               \
            : [quads] "r"(quads), [w0] "r"(w[0]), [w1] "r"(w[4]), [w2] "r"(w[8]), [bias] "r"(bias)                     \
            : "t0", "t1", "t2", "t3", "t4", "t5", "t6", "memory");                                                     \
    }                                                                                                                  \
    static inline void NAME##_strided(const struct tw_column_dots *s, const uint32_t *t, const uint32_t *w,            \
                                      int32_t bias, int32_t *out) {                                                    \
        const uint32_t w0 = w[0], w1 = w[4], w2 = w[8];                                                                \
        const uint32_t *u = t + s->dilation, *v = u + s->dilation;                                                     \
        for (int i = 0; i < s->pixels; i++, out += 16, t += s->stride, u += s->stride, v += s->stride)                 \
            *out = SDOT(SDOT(SDOT(bias, *t, w0), *u, w1), *v, w2);                                                     \
    }                                                                                                                  \
    static inline void NAME##_any(const struct tw_column_dots *s, const uint32_t *t, const uint32_t *w, int32_t bias,  \
                                  int32_t *out) {                                                                      \
        for (int i = 0; i < s->pixels; i++, out += 16, t += s->stride) {                                               \
            int32_t sum = bias;                                                                                        \
            const uint32_t *weight = w;                                                                                \
            for (int block = 0; block < s->blocks; block++)                                                            \
                for (int k = 0; k < s->columns; k++, weight += 4)                                                      \
                    sum = SDOT(sum, t[block * 4 * s->pitch + k * s->dilation], *weight);                               \
            *out = sum;                                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    static __attribute__((noinline, unused)) void NAME(const struct tw_column_dots *s, int channels,                   \
                                                       const uint32_t *w, const int32_t *bias, const uint32_t *t,      \
                                                       int32_t *out) {                                                 \
        const int three = s->blocks == 1 && s->columns == 3, next = s->stride == 1 && s->dilation == 1;                \
        for (int c = 0; c < channels; c++, w++, t += s->pitch, out++) {                                                \
            if (three && next)                                                                                         \
                NAME##_3(t, w, bias[c], s->pixels / 4, out);                                                           \
            else if (three)                                                                                            \
                NAME##_strided(s, t, w, bias[c], out);                                                                 \
            else                                                                                                       \
                NAME##_any(s, t, w, bias[c], out);                                                                     \
        }                                                                                                              \
    }
TW_DEFINE_COLUMN_DOTS(tw_column_dots_s8, TW_SDOT_S8, tw_sdot_s8)
TW_DEFINE_COLUMN_DOTS(tw_column_dots_u8, TW_SDOT_U8, tw_sdot_u8)

#endif
