/* Helium: vectors of 16 bytes. Products of bytes are added up in core registers, 16 by one VMLADAVA; what follows is done
 * for four sums at once. Included by kernels of this folder and by what is generated for them. */
#ifndef TILEWRIGHT_MVE_H
#define TILEWRIGHT_MVE_H

#include "tilewright_lanes.h"

/* Products of rows of bytes with filters, packed `F/4,K/16,F%4,K%16`: of four filters with two rows, or with one.
 *
 * Sums begin with those of `first`, the same for every pair: 8 numbers for each four filters, or 4 for one row. They are
 * stored row by row. All but the last 16 bytes of a row are read without a predicate. The loop over them is unrolled four
 * times and entered in the middle; ADR counts from words, hence the alignment. */
struct tw_dots {
    const void *a0; /* the members are in the order in which one instruction loads them */
    int last;
    const void *a1;
    const int32_t *end;
    const int8_t *w;
    int entry, pairs, rounds, step; /* bytes to the next pair */
    const int32_t *first;
    int32_t *sums;
    int row; /* bytes of a row of sums */
};
/* For `rows` rows of `length` bytes at once. `flip`: the bytes are unsigned. */
TW_INLINE struct tw_dots tw_dots_of(int rows, int flip, int length, int filters, const int8_t *w,
                                    const int32_t *first) {
    const unsigned whole = (unsigned)(length - 1) / 16, block = (unsigned)(rows == 2 ? 56 + 8 * flip : 36 + 4 * flip);
    const unsigned skipped = whole ? (-whole & 3) * block : 4 * block + 8; /* of the loop, whose branch has 8 bytes */
    return (struct tw_dots){.last = length - (int)(16 * whole),
                            .end = first + (filters + 3) / 4 * 4 * rows,
                            .w = w,
                            .entry = (int)skipped + 1, /* it is Thumb code */
                            .rounds = (int)((whole + 3) / 4),
                            .first = first,
                            .row = (filters + 3) / 4 * 16};
}
/* One filter of four against two rows, and against one. */
#define TW_DOT_2(q, sum0, sum1)                                                                                        \
    "vldrb.8 " q ", [r5], #16\nvmladava.s8 " sum0 ", q0, " q "\nvmladava.s8 " sum1 ", q1, " q "\n"
#define TW_DOT_2_SUMS                                                                                                  \
    TW_DOT_2("q2", "r0", "r8") TW_DOT_2("q3", "r2", "r10") TW_DOT_2("q2", "r4", "r12") TW_DOT_2("q3", "r6", "lr")
#define TW_DOT_1(q, sum) "vldrb.8 " q ", [r5], #16\nvmladava.s8 " sum ", q0, " q "\n"
#define TW_DOT_1_SUMS TW_DOT_1("q2", "r0") TW_DOT_1("q3", "r2") TW_DOT_1("q2", "r4") TW_DOT_1("q3", "r6")
#define TW_FOUR_TIMES(text) text text text text
#define TW_DEFINE_DOTS(NAME, LOADS, LAST, FLIP, SUMS, LIST, STORES, NEXT, FIRST, ...)                                  \
    TW_APART void NAME(const struct tw_dots *d) {                                                                      \
        register const struct tw_dots *dots __asm__("r0") = d;                                                         \
        __asm__ volatile(                                                                                              \
            ".p2align 2\npush {r7}\nsub sp, sp, #40\nldm r0, {r1, r2, r3, r4, r5, r6, r8, r9, r10, r11, r12, lr}\n"    \
            "mov r7, r12\nadr.w r0, 3f\nadd r6, r6, r0\nstrd r9, r6, [sp, #8]\nstrd r4, lr, [sp, #16]\n"               \
            "strd r11, r5, [sp, #24]\nstrd r10, r8, [sp, #32]\nvctp.8 r2\n" FIRST                                      \
            "1:\nstrd r1, r3, [sp]\n" /* the next rows */                                                              \
            "2:\nldrd r1, r3, [sp]\nldr.w r9, [sp, #8]\nldm.w r11!, " LIST                                             \
            "\nldr.w pc, [sp, #12]\n3:\n" TW_FOUR_TIMES(                                                               \
                LOADS FLIP SUMS) "subs.w r9, r9, #1\nbne.w 3b\n" LAST FLIP SUMS STORES                                 \
                                 "ldr r1, [sp, #16]\ncmp r11, r1\nbne.w 2b\n" NEXT                                     \
                                 "ldrd r1, r3, [sp]\nldrd r11, r5, [sp, #24]\nldrd r10, r8, [sp, #32]\nadd r1, r10\n"  \
                                 "add r3, r10\nsubs r8, #1\nstr r8, [sp, #36]\nbne.w 1b\nadd sp, sp, #40\npop {r7}\n"  \
            : "+r"(dots)                                                                                               \
            :                                                                                                          \
            : "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "d0", "d1", "d2", "d3", "d4", \
              "d5", "d6", "d7", __VA_ARGS__ "cc", "memory");                                                           \
    }
#define TW_DOT_2_STORES "ldr.w r9, [sp, #20]\nadd r9, r7\nstm.w r7!, {r0, r2, r4, r6}\nstm.w r9, {r8, r10, r12, lr}\n"
#define TW_DOT_2_NEXT "ldr.w r9, [sp, #20]\nadd r7, r9\n"
#define TW_DOT_1_STORES "stm.w r7!, {r0, r2, r4, r6}\n"
#define TW_DOT_2_LOADS "vldrb.8 q0, [r1], #16\nvldrb.8 q1, [r3], #16\n"
#define TW_DOT_2_LAST "vpstt\nvldrbt.8 q0, [r1]\nvldrbt.8 q1, [r3]\n"
#define TW_DOT_1_LOADS "vldrb.8 q0, [r1], #16\n"
#define TW_DOT_1_LAST "vpst\nvldrbt.8 q0, [r1]\n"
#define TW_DOT_2_LIST "{r0, r2, r4, r6, r8, r10, r12, lr}"
#define TW_DOT_1_LIST "{r0, r2, r4, r6}"
#define TW_DOT_FLIP_FIRST "movs r4, #128\nvdup.8 q4, r4\n"
TW_DEFINE_DOTS(tw_dot_pairs_s8, TW_DOT_2_LOADS, TW_DOT_2_LAST, "", TW_DOT_2_SUMS, TW_DOT_2_LIST, TW_DOT_2_STORES,
               TW_DOT_2_NEXT, "", )
TW_DEFINE_DOTS(tw_dot_pairs_u8, TW_DOT_2_LOADS, TW_DOT_2_LAST, "veor q0, q0, q4\nveor q1, q1, q4\n", TW_DOT_2_SUMS,
               TW_DOT_2_LIST, TW_DOT_2_STORES, TW_DOT_2_NEXT, TW_DOT_FLIP_FIRST, "d8", "d9", )
TW_DEFINE_DOTS(tw_dot_singles_s8, TW_DOT_1_LOADS, TW_DOT_1_LAST, "", TW_DOT_1_SUMS, TW_DOT_1_LIST, TW_DOT_1_STORES, "",
               "", )
TW_DEFINE_DOTS(tw_dot_singles_u8, TW_DOT_1_LOADS, TW_DOT_1_LAST, "veor q0, q0, q4\n", TW_DOT_1_SUMS, TW_DOT_1_LIST,
               TW_DOT_1_STORES, "", TW_DOT_FLIP_FIRST, "d8", "d9", )

/* The same for floats and filters packed `F/8,K,F%8`: of eight filters with two rows, or with one. Sums begin with those of
 * `first`, 8 numbers for each eight filters. */
struct tw_real_dots {
    const float *a0, *a1, *w;
    int rounds, rest; /* of four numbers of a row, and single ones */
    const float *first, *end;
    float *sums;
    int row, step, pairs; /* bytes of a row of sums, and to the next pair */
    const float *cursor;
};
TW_INLINE struct tw_real_dots tw_real_dots_of(int length, int filters, const float *w, const float *first) {
    const int eights = (filters + 7) / 8;
    return (struct tw_real_dots){.w = w,
                                 .rounds = length / 4,
                                 .rest = length % 4,
                                 .first = first,
                                 .end = first + eights * 8,
                                 .row = eights * 32};
}
#define TW_REAL_2(x0, x1)                                                                                              \
    "vldrw.32 q0, [r2], #16\nvldrw.32 q1, [r2], #16\nvfma.f32 q4, q0, " x0 "\nvfma.f32 q5, q1, " x0                    \
    "\nvfma.f32 q6, q0, " x1 "\nvfma.f32 q7, q1, " x1 "\n"
#define TW_REAL_1(x0)                                                                                                  \
    "vldrw.32 q0, [r2], #16\nvldrw.32 q1, [r2], #16\nvfma.f32 q4, q0, " x0 "\nvfma.f32 q5, q1, " x0 "\n"
#define TW_REAL_DOTS(FIRST, FOUR, ONE, STORES, NEXT)                                                                   \
    register struct tw_real_dots *dots __asm__("r0") = d;                                                              \
    __asm__ volatile("push {r7}\nmov r7, r0\nldr r3, [r7, #28]\n"                                                      \
                     "1:\nldr r10, [r7, #20]\nldr r2, [r7, #8]\n"                                                      \
                     "2:\nvldrw.32 q4, [r10], #16\nvldrw.32 q5, [r10], #16\nstr r10, [r7, #44]\n" FIRST                \
                     "ldrd r0, r1, [r7]\nldr lr, [r7, #12]\nwls lr, lr, 4f\n"                                          \
                     "3:\n" FOUR "le lr, 3b\n"                                                                         \
                     "4:\nldr lr, [r7, #16]\nwls lr, lr, 6f\n"                                                         \
                     "5:\n" ONE "le lr, 5b\n"                                                                          \
                     "6:\n" STORES "ldr r10, [r7, #44]\nldr r9, [r7, #24]\ncmp r10, r9\nbne 2b\n" NEXT                 \
                     "ldrd r0, r1, [r7]\nldr r9, [r7, #36]\nadd r0, r9\nadd r1, r9\nstrd r0, r1, [r7]\n"               \
                     "ldr r9, [r7, #40]\nsubs r9, #1\nstr r9, [r7, #40]\nbne 1b\npop {r7}\n"                           \
                     : "+r"(dots)                                                                                      \
                     :                                                                                                 \
                     : "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "d0", "d1", "d2",    \
                       "d3", "d8", "d9", "d10", "d11", "d12", "d13", "d14", "d15", "cc", "memory")
TW_APART void tw_real_pairs(struct tw_real_dots *d) {
    TW_REAL_DOTS("vmov q6, q4\nvmov q7, q5\n",
                 "ldm r0!, {r4, r5, r6, r8}\nldm r1!, {r9, r10, r11, r12}\n" TW_REAL_2("r4", "r9")
                     TW_REAL_2("r5", "r10") TW_REAL_2("r6", "r11") TW_REAL_2("r8", "r12"),
                 "ldr r4, [r0], #4\nldr r9, [r1], #4\n" TW_REAL_2("r4", "r9"),
                 "ldr r9, [r7, #32]\nadd r9, r3\nvstrw.32 q4, [r3], #16\nvstrw.32 q5, [r3], #16\nvstrw.32 q6, [r9]\n"
                 "vstrw.32 q7, [r9, #16]\n",
                 "ldr r9, [r7, #32]\nadd r3, r9\n");
}
TW_APART void tw_real_singles(struct tw_real_dots *d) {
    TW_REAL_DOTS("", "ldm r0!, {r4, r5, r6, r8}\n" TW_REAL_1("r4") TW_REAL_1("r5") TW_REAL_1("r6") TW_REAL_1("r8"),
                 "ldr r4, [r0], #4\n" TW_REAL_1("r4"), "vstrw.32 q4, [r3], #16\nvstrw.32 q5, [r3], #16\n", "");
}
/* What sums of floats begin with. */
TW_INLINE void tw_real_first(float *first, const float *bias, int filters) {
    for (int f = 0; f < (filters + 7) / 8 * 8; f++)
        first[f] = bias && f < filters ? bias[f] : 0.0f;
}

/* What sums begin with: the bias, and 128 * sum(w) where 128 is taken off the bytes of a row (`flip`). */
TW_APART void tw_dots_first(int32_t *first, int rows, int flip, const int32_t *bias, const int8_t *w, int length,
                            int filters) {
    const int blocks = (length + 15) / 16;
    for (int f = 0; f < filters; f += 4, first += rows * 4) {
        const int simple = !flip && f + 4 <= filters;
        if (simple)
            vstrwq_s32(first, bias ? vldrwq_s32(bias + f) : vdupq_n_s32(0));
        for (int i = simple ? 4 : 0; i < 4; i++) {
            int32_t sum = 0;
            for (int k = 0; flip && k < blocks; k++)
                sum = vaddvaq_s8(sum, vldrbq_s8(w + ((f / 4 * blocks + k) * 4 + i) * 16));
            first[i] = sum * 128 + (bias && f + i < filters ? bias[f + i] : 0);
        }
        if (rows == 2)
            vstrwq_s32(first + 4, vldrwq_s32(first));
    }
}

/* Lines of an image, turned so that the taps of a pixel lie side by side: columns of `KH` runs of `C` bytes. Columns that
 * are `dilation` apart are neighbours, `width / dilation` of each kind. */
struct tw_strip {
    int C, KH, IH, IW, x_row, x_col, width, dilation_0, dilation_1;
    int zero, flip; /* what is outside the image, and what is exclusive-ored to what is inside */
    int runs;       /* of short ones, how many a vector holds; 0 where they are copied one by one */
    uint8_t places[16];
};
/* Where the bytes of short runs go that lie side by side. */
TW_INLINE void tw_strip_begin(struct tw_strip *s) {
    const int pitch = s->KH * s->C;
    s->runs = s->x_col == s->C && s->dilation_1 == 1 && s->C <= 8 ? 16 / s->C : 0;
    if ((s->runs - 1) * pitch + s->C > 256)
        s->runs = 0;
    for (int i = 0, run = 0, at = 0; s->runs && i < 16; i++) {
        s->places[i] = (uint8_t)(run * pitch + at);
        if (++at == s->C)
            at = 0, run++;
    }
}

TW_INLINE void tw_fill(char *to, uint8x16_t value, int bytes) {
    for (; bytes > 0; bytes -= 16, to += 16)
        vstrbq_p_u8((uint8_t *)to, value, vctp8q((uint32_t)bytes));
}
/* Copies `count` runs of `bytes` bytes. */
TW_INLINE void tw_copy_runs(const char *from, int from_step, char *to, int to_step, int bytes, int count,
                            uint8x16_t flip) {
    for (; bytes >= 16; bytes -= 16, from += 16, to += 16) {
        const uint8_t *x = (const uint8_t *)from;
        uint8_t *y = (uint8_t *)to;
        for (int i = 0; i < count; i++, x += from_step, y += to_step)
            vstrbq_u8(y, veorq_u8(vldrbq_u8(x), flip));
    }
    const mve_pred16_t rest = vctp8q((uint32_t)bytes);
    for (int i = 0; bytes && i < count; i++, from += from_step, to += to_step)
        vstrbq_p_u8((uint8_t *)to, veorq_u8(vldrbq_z_u8((const uint8_t *)from, rest), flip), rest);
}
/* The same for runs that lie side by side and are so short that a vector holds several. */
TW_INLINE void tw_scatter_runs(const struct tw_strip *s, const char *from, char *to, int count, uint8x16_t flip) {
    const int chunk = s->runs * s->C, step = s->runs * s->KH * s->C;
    const uint8x16_t place = vldrbq_u8(s->places);
    const mve_pred16_t all = vctp8q((uint32_t)chunk);
    for (; count >= s->runs; count -= s->runs, from += chunk, to += step) {
        const uint8x16_t bytes = veorq_u8(vldrbq_z_u8((const uint8_t *)from, all), flip);
        vstrbq_scatter_offset_p_u8((uint8_t *)to, place, bytes, all);
    }
    const mve_pred16_t some = vctp8q((uint32_t)(count * s->C));
    const uint8x16_t bytes = veorq_u8(vldrbq_z_u8((const uint8_t *)from, some), flip);
    vstrbq_scatter_offset_p_u8((uint8_t *)to, place, bytes, some);
}

/* `x` is the image, `ih` and `iw` the place that the first tap sees, which may be outside. */
TW_APART void tw_strip_fill(const struct tw_strip *s, const void *x, int ih, int iw, void *to) {
    const int pitch = s->KH * s->C, each = s->width / s->dilation_1;
    const uint8x16_t flip = vdupq_n_u8((uint8_t)s->flip), outside = vdupq_n_u8((uint8_t)(s->zero ^ s->flip));
    const struct tw_span rows = tw_inside(ih, s->IH, s->KH, s->dilation_0);
    for (int phase = 0; phase < s->dilation_1; phase++) {
        const struct tw_span inside = tw_inside(iw + phase, s->IW, each, s->dilation_1);
        const int step = s->x_col * s->dilation_1, count = inside.end - inside.begin;
        char *const out = (char *)to + phase * each * pitch;
        if (rows.end - rows.begin < s->KH || count == 0) {
            tw_fill(out, outside, each * pitch);
        } else {
            tw_fill(out, outside, inside.begin * pitch);
            tw_fill(out + inside.end * pitch, outside, (each - inside.end) * pitch);
        }
        for (int row = rows.begin; row < rows.end; row++) {
            const int first = (iw + phase) * s->x_col + inside.begin * step;
            const char *from = (const char *)x + (ih + row * s->dilation_0) * s->x_row + first;
            char *const at = out + inside.begin * pitch + row * s->C;
            if (s->runs)
                tw_scatter_runs(s, from, at, count, flip);
            else
                tw_copy_runs(from, step, at, pitch, s->C, count, flip);
        }
    }
}

/* Where a filter meets a line of pixels, in elements: those of every second one, or columns of a turned line. */
struct tw_places {
    int step, stride, dilation, each;
};
TW_INLINE int tw_place(const struct tw_places *p, int pixel) {
    if (p->dilation == 1)
        return pixel * p->step;
    return (pixel * p->stride % p->dilation * p->each + pixel * p->stride / p->dilation) * p->step;
}

/* One axis of an image and of the result: elements, how far they lie apart, and how a filter walks along it. */
struct tw_axis {
    int outputs, inputs, in_step, out_step, stride, pad, dilation, taps;
};

/* How the taps of a pixel lie in the image and in the filter: rows across a line of pixels, columns along it. */
struct tw_window_of_reals {
    struct tw_span rows, columns;
    int x_row, x_column, w_row, w_column, w_next; /* the last one to the next four channels */
};

/* Planes for filters of one channel each: eight channels at a time, each with the taps of a line of pixels side by side.
 * They are columns across the line, one for each input along it. A line outside the image has a step of 0. */
struct tw_planes {
    char *to;
    int pitch, taps, flip; /* bytes from one channel to the next; columns have `taps` bytes */
    const uint8_t *lines[8];
    int steps[8];
};
/* Rows of eight channels from `tap` on: `rows` of them at once, each byte stored into the plane of its channel. */
TW_INLINE void tw_planes_rows(const int rows, const struct tw_planes *p, int tap, int channel, uint8_t *to, int count) {
    const uint16x8_t flip = vdupq_n_u16((uint16_t)p->flip), place = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)p->pitch);
    const int next = p->taps;
    const uint8_t *x[4];
    uint16x8_t places[4];
    int step[4];
    TW_UNROLL for (int row = 0; row < rows; row++) {
        step[row] = p->steps[tap + row];
        x[row] = p->lines[tap + row] + (step[row] ? channel : 0);
        places[row] = vaddq_n_u16(place, (uint16_t)(tap + row));
    }
    if (p->flip) {
        for (int i = 0; i < count; i++, to += next) {
            TW_UNROLL for (int row = 0; row < rows; row++) {
                vstrbq_scatter_offset_u16(to, places[row], veorq_u16(vldrbq_u16(x[row]), flip));
                x[row] += step[row];
            }
        }
    } else {
        for (int i = 0; i < count; i++, to += next) {
            TW_UNROLL for (int row = 0; row < rows; row++) {
                vstrbq_scatter_offset_u16(to, places[row], vldrbq_u16(x[row]));
                x[row] += step[row];
            }
        }
    }
}
/* The same for one row of fewer channels. */
TW_INLINE void tw_planes_few(const struct tw_planes *p, int tap, int channel, int channels, uint8_t *to, int count) {
    const uint16x8_t flip = vdupq_n_u16((uint16_t)p->flip), place = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)p->pitch);
    const mve_pred16_t some = vctp16q((uint32_t)channels);
    const int step = p->steps[tap], next = p->taps;
    const uint8_t *x = p->lines[tap] + (step ? channel : 0);
    for (int i = 0; i < count; i++, x += step, to += next)
        vstrbq_scatter_offset_p_u16(to + tap, place, veorq_u16(vldrbq_z_u16(x, some), flip), some);
}
TW_APART void tw_planes_fill(const struct tw_planes *p, int channel, int channels, int count) {
    for (int c = 0; c < channels; c += 8) {
        uint8_t *const to = (uint8_t *)p->to + c * p->pitch;
        for (int tap = 0, rows; tap < p->taps; tap += rows) {
            rows = channels - c >= 8 && p->taps - tap >= 4 ? 4 : 1;
            if (rows == 4)
                tw_planes_rows(4, p, tap, channel + c, to, count);
            else if (channels - c >= 8)
                tw_planes_rows(1, p, tap, channel + c, to, count);
            else
                tw_planes_few(p, tap, channel + c, channels - c, to, count);
        }
    }
}

/* Columns that are outside the image. */
TW_APART void tw_planes_outside(const struct tw_planes *p, int begin, int end, int channels, int value) {
    const uint16x8_t place = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)p->pitch);
    const uint16x8_t bytes = vdupq_n_u16((uint16_t)(value & 0xFF));
    for (int c = 0; c < channels; c += 8) {
        uint8_t *const to = (uint8_t *)p->to + c * p->pitch;
        for (int i = begin * p->taps; i < end * p->taps; i++)
            vstrbq_scatter_offset_u16(to + i, place, bytes);
    }
}

/* Sums of fours of channels for a line of pixels; filters have up to 16 taps each, and `order` says which byte of 16 is
 * the next one, or that there is none by a place behind them. */
struct tw_plane_dots {
    const char *x; /* the members are in the order in which one instruction loads them */
    const int8_t *w;
    int pitch, pixels, fours;
    const uint8_t *order;
    int32_t *sums;
    int step;
};
#define TW_PLANE_LOOP(STEP, MOVES)                                                                                     \
    "2:\nvldrb.8 q0, [r1]" STEP "\nvldrb.8 q1, [r3]" STEP "\nvmladav.s8 r0, q0, q4\nvldrb.8 q2, [r5]" STEP "\n"        \
    "vmladav.s8 r2, q1, q5\nvldrb.8 q3, [r9]" STEP "\nvmladav.s8 r4, q2, q6\nvmladav.s8 r6, q3, q7\n" MOVES            \
    "stm.w r11!, {r0, r2, r4, r6}\nle lr, 2b\n"
#define TW_PLANE_DOTS(LOOP)                                                                                            \
    do {                                                                                                               \
        register const struct tw_plane_dots *dots __asm__("r0") = d;                                                   \
        __asm__ volatile(                                                                                              \
            "ldm r0, {r1, r2, r3, r4, r5, r6, r11, r12}\nsub sp, sp, #24\nstrd r3, r4, [sp]\n"                         \
            "strd r6, r5, [sp, #8]\n" /* pitch, pixels, order, fours */                                                \
            "1:\nldrd r3, lr, [sp]\nldr r4, [sp, #8]\nvldrb.8 q0, [r4]\nadd r4, r2, #16\nadd r6, r2, #32\n"            \
            "add r8, r2, #48\nvldrb.u8 q4, [r2, q0]\nvldrb.u8 q5, [r4, q0]\nvldrb.u8 q6, [r6, q0]\n"                   \
            "vldrb.u8 q7, [r8, q0]\nadd r10, r2, #64\nadd.w r5, r1, r3, lsl #1\nadd.w r9, r5, r3\n"                    \
            "add r3, r1\nadd r8, r5, r5\nsub r8, r8, r1\ndls lr, lr\n" LOOP                                            \
            "mov r1, r8\nmov r2, r10\nldr r4, [sp, #12]\nsubs r4, #1\nstr r4, [sp, #12]\nbne.w 1b\n"                   \
            "add sp, sp, #24\n"                                                                                        \
            : "+r"(dots)                                                                                               \
            :                                                                                                          \
            : "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "d0", "d1", "d2", "d3", "d4", \
              "d5", "d6", "d7", "d8", "d9", "d10", "d11", "d12", "d13", "d14", "d15", "cc", "memory");                 \
    } while (0)
TW_APART void tw_plane_dots(const struct tw_plane_dots *d) {
    if (d->step == 4) /* 3 x 3, two lines at once */
        TW_PLANE_DOTS(TW_PLANE_LOOP(", #4", ""));
    else if (d->step == 10)
        TW_PLANE_DOTS(TW_PLANE_LOOP(", #10", ""));
    else
        TW_PLANE_DOTS(TW_PLANE_LOOP("", "add r1, r12\nadd r3, r12\nadd r5, r12\nadd r9, r12\n"));
}

#endif
