/* What attention in whole numbers does for each query. */
#ifndef TILEWRIGHT_ATTENTION_H
#define TILEWRIGHT_ATTENTION_H

#include "tilewright_kernel.h"

/* Two scores of 16 bits of two sums, the first one in the lower half: p.addRNr, p.clip, pv.pack. */
TW_INLINE int32_t tw_attention_pair(int32_t first, int32_t second, int32_t mul, int shift) {
    int32_t a = tw_sum_rounded((int32_t)((uint32_t)first * (uint32_t)mul), 0, 0, shift),
            b = tw_sum_rounded((int32_t)((uint32_t)second * (uint32_t)mul), 0, 0, shift);
    __asm__(".insn r 0x33, 1, 0x0A, %0, %0, x16\n.insn r 0x33, 1, 0x0A, %1, %1, x16\n.insn r 0x57, 0, 0x68, %0, %1, %0"
            : "+r"(a), "+r"(b));
    return a;
}

/* Weights of keys, four at a time, and zeros up to a multiple of four; returns their sum. Scores are there up to that, of
 * any value. What a score lies below the largest fits 16 bits without a sign. */
TW_APART uint32_t tw_attention_weights(const int16_t *scores, int count, int top, const uint8_t *table, int last,
                                       uint8_t *weights) {
    uint32_t total = 0;
    uint8_t *y = weights;
    if (count > 0)
        __asm__ volatile(
            ".option push\n.option norvc\n" TW_REPEAT("%[fours]", "36") TW_NEXT_WORD("t0", "%[x]") TW_NEXT_WORD(
                "t1", "%[x]") ".insn r 0x57, 0, 0x04, t0, %[top], t0\n.insn r 0x57, 0, 0x04, t1, %[top], t1\n"
                              /* pv.minu.h */
                              ".insn r 0x57, 0, 0x14, t0, t0, %[last]\n"
                              ".insn r 0x57, 0, 0x14, t1, t1, %[last]\n"
                              /* p.exthz, then p.lbu */
                              ".insn r 0x33, 5, 0x08, t2, t0, x0\nsrli t0, t0, 16\n"
                              ".insn r 0x33, 5, 0x08, t3, t1, x0\nsrli t1, t1, 16\n"
                              ".insn r 0x03, 7, 0x20, t2, %[table], t2\n"
                              ".insn r 0x03, 7, 0x20, t0, %[table], t0\n"
                              ".insn r 0x03, 7, 0x20, t3, %[table], t3\n"
                              ".insn r 0x03, 7, 0x20, t1, %[table], t1\n"
                              /* pv.packlo.b, pv.packhi.b, p.sw, pv.sdotup.b */
                              ".insn r 0x57, 1, 0x70, t2, t0, t2\n.insn r 0x57, 1, 0x6C, t2, t1, t3\n"
                              ".insn s 0x2B, 2, t2, 4(%[y])\n" TW_SDOT("0x50", "%[total]", "t2",
                                                                       "%[ones]") ".option pop\n"
            : [x] "+r"(scores), [y] "+r"(y), [total] "+r"(total)
            : [fours] "r"((count + 3) >> 2), [top] "r"((top & 0xffff) | (int)((uint32_t)top << 16)),
              [last] "r"(last | last << 16), [table] "r"(table), [ones] "r"(0x01010101)
            : "t0", "t1", "t2", "t3", "memory");
    TW_UNROLL_BY(1)
    for (int l = count; l & 3; l++) {
        total -= weights[l];
        weights[l] = 0;
    }
    return total;
}

#endif
