/* Dot products of float32, two lanes at a time: what products and convolutions have in common. */
#ifndef TILEWRIGHT_FLOATS_H
#define TILEWRIGHT_FLOATS_H

#include "tilewright_streams.h"

/* Columns whose results are there before they are stored. */
#define TW_FLOAT_COLUMNS 64

/* For rows, one after the other, and eight columns after the other: out[i] = bias[i] + the sum of `pairs` products of the
 * streams. Stream 0 gives each pair of a row eight times, and all of them again for the next columns; stream 1 gives those of
 * the columns. Biases of the next columns are `bias_bytes` behind. There may be no pairs. */
TW_APART void tw_float_dots(int rows, int blocks, int pairs, const float *bias, int bias_bytes, float *out) {
    const float *at;
    int left;
    if (pairs == 0) {
        for (at = bias; blocks > 0; blocks--, out += 8, at = (const float *)((const char *)at + bias_bytes))
            memcpy(out, at, 8 * sizeof *out);
        return;
    }
    __asm__ volatile(TW_STREAMS_ON "3:\nmv %[at], %[bias]\nmv %[left], %[blocks]\n1:\n" TW_SUMS(TW_VFMUL_S, TW_VFMAC_S)
                         TW_RESULTS_AT("flw", "4", "%[at]") TW_ADD_LANES TW_RESULTS_AT(
                             "fsw", "4", "%[out]") "add %[at], %[at], %[step]\naddi %[out], %[out], 32\n"
                                                   "addi %[left], %[left], -1\nbnez %[left], 1b\n"
                                                   "addi %[rows], %[rows], -1\nbnez %[rows], 3b\n" TW_STREAMS_OFF
                     : [rows] "+&r"(rows), [out] "+&r"(out), [at] "=&r"(at), [left] "=&r"(left)
                     : [blocks] "r"(blocks), [bias] "r"(bias), [more] "r"(pairs - 2), [step] "r"(bias_bytes)
                     : TW_EIGHT_SUMS, TW_EIGHT_RESULTS, TW_STREAM_REGISTERS, "memory");
}

/* Biases of `count` columns from `first` on, in whole blocks of eight: in `panel` where the last block is short, and zeros for
 * all blocks at the start of it where there are none. */
TW_INLINE const float *tw_float_biases(const float *bias, int first, int count, float *panel) {
    if (bias && count % 8 == 0)
        return bias + first;
    const int given = bias ? count : 0;
    for (int i = 0; i < (bias ? count + 8 - count % 8 : 8); i++)
        panel[i] = i < given ? bias[first + i] : 0;
    return panel;
}

/* A row, copied to where pairs of it are in words of 64 bits; the last one may be short. */
TW_INLINE const float *tw_float_row(const float *row, int count, float *copy) {
    for (int i = 0; i < count; i++)
        copy[i] = row[i];
    copy[count] = 0;
    tw_stream_fence();
    return copy;
}

#endif
