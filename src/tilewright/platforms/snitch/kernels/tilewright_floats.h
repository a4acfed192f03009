/* Dot products of float32, two lanes at a time: what products and convolutions have in common. */
#ifndef TILEWRIGHT_FLOATS_H
#define TILEWRIGHT_FLOATS_H

#include "tilewright_streams.h"

/* Columns whose results are there before they are stored. */
#define TW_FLOAT_COLUMNS 64

/* For eight columns after the other: out[i] = bias[i] + the sum of `pairs` products of the streams. Stream 0 gives each pair
 * eight times, and all of them again for the next columns; stream 1 gives those of the columns. Biases of the next columns
 * are `bias_bytes` behind. There may be no pairs. */
TW_APART void tw_float_dots(int blocks, int pairs, const float *bias, int bias_bytes, float *out) {
    if (pairs == 0) {
        for (int i = 0; i < blocks; i++, out += 8, bias = (const float *)((const char *)bias + bias_bytes))
            memcpy(out, bias, 8 * sizeof *out);
        return;
    }
    __asm__ volatile(
        TW_STREAMS_ON "1:\n" TW_SUMS(TW_VFMUL_S, TW_VFMAC_S) TW_RESULTS_AT("flw", "4", "%[bias]")
            TW_ADD_LANES TW_RESULTS_AT(
                "fsw", "4",
                "%[out]") "add %[bias], %[bias], %[step]\n"
                          "addi %[out], %[out], 32\naddi %[blocks], %[blocks], -1\nbnez %[blocks], 1b\n" TW_STREAMS_OFF
        : [blocks] "+r"(blocks), [bias] "+r"(bias), [out] "+r"(out)
        : [more] "r"(pairs - 2), [step] "r"(bias_bytes)
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
