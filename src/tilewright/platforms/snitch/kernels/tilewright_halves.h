/* Products of bytes by the FPU. Bytes are numbers of 16 bits exactly, their products are exact in 32 bits, and so are sums
 * below 2^24; in one cycle there are four of them. Integers are multiplied in one unit of all cores, one in a cycle. */
#ifndef TILEWRIGHT_HALVES_H
#define TILEWRIGHT_HALVES_H

#include "tilewright_streams.h"

/* How many products of four bytes may be added up: 128 * 128 * 1024, or 255 * 128 * 512. */
#define TW_QUADS_OF_SIGNED 256
#define TW_QUADS_OF_UNSIGNED 128

/* Words of four bytes become four float16 each, in the order 0, 2, 1, 3. A byte behind 0x64 is 1024 more than its value, or
 * 1152 more if it is signed and its sign is turned over; stream 0 reads these, and stream 2 writes their values. */
TW_INLINE void tw_halves(const uint32_t *bytes, int words, int is_signed, uint64_t *halves) {
    const uint32_t flip = is_signed ? 0x80808080u : 0u;
    uint32_t *to = (uint32_t *)halves;
    if (words <= 0)
        return;
    TW_UNROLL_4 for (int i = 0; i < words; i++, to += 2) {
        const uint32_t word = bytes[i] ^ flip;
        to[0] = (word & 0x00FF00FFu) | 0x64006400u;
        to[1] = ((word >> 8) & 0x00FF00FFu) | 0x64006400u;
    }
    __asm__ volatile("fence" ::: "memory");
    TW_STREAM_TIMES(0, 1);
    TW_STREAM_LOOP(0, 0, words, 8);
    TW_STREAM_TIMES(2, 1);
    TW_STREAM_LOOP(2, 0, words, 8);
    TW_STREAM_READ(0, 1, halves);
    TW_STREAM_WRITE(2, 1, halves);
    /* vfcpka.h.s and vfcpkb.h.s: the number in all lanes; vfsub.h. */
    __asm__ volatile(
        ".insn r 0x33, 2, 0x58, ft3, %[less], %[less]\n.insn r 0x33, 6, 0x58, ft3, %[less], "
        "%[less]\n" TW_STREAMS_ON TW_FREP_1("%[more]") ".insn r 0x33, 2, 0x42, ft2, ft0, ft3\n" TW_STREAMS_OFF
        :
        : [more] "r"(words - 1), [less] "f"(is_signed ? 1152.0f : 1024.0f)
        : "ft0", "ft1", "ft2", "ft3", "memory");
    TW_STREAM_AWAIT(2);
}

/* out[i] += the sum of `quads` products of the streams, of which each of stream 0 is given eight times; i below 8. */
TW_INLINE void tw_halves_dots(int quads, int32_t *out) {
    int32_t t0, t1, t2, t3, t4, t5, t6, t7;
    __asm__ volatile("fcvt.d.w ft11, zero\nfmv.w.x fs0, zero\n" TW_STREAMS_ON TW_EIGHT(TW_ZERO_D) TW_FREP_8("%[more]")
                         TW_EIGHT(TW_VFDOTPEX_S_H) TW_STREAMS_OFF TW_NO_RESULTS TW_ADD_LANES
                     "fcvt.w.s %0, fa3\nfcvt.w.s %1, fa4\nfcvt.w.s %2, fa5\nfcvt.w.s %3, fa6\n"
                     "fcvt.w.s %4, fa7\nfcvt.w.s %5, ft8\nfcvt.w.s %6, ft9\nfcvt.w.s %7, ft10\n"
                     : "=&r"(t0), "=&r"(t1), "=&r"(t2), "=&r"(t3), "=&r"(t4), "=&r"(t5), "=&r"(t6), "=&r"(t7)
                     : [more] "r"(quads - 1)
                     : TW_EIGHT_SUMS, TW_EIGHT_RESULTS, TW_STREAM_REGISTERS, "ft11", "fs0", "memory");
    out[0] += t0, out[1] += t1, out[2] += t2, out[3] += t3;
    out[4] += t4, out[5] += t5, out[6] += t6, out[7] += t7;
}

/* Biases of columns from `first` on, `count` of them. */
TW_INLINE void tw_halves_begin(const int32_t *bias, int first, int count, int32_t *out) {
    TW_UNROLL for (int i = 0; i < 8; i++) out[i] = bias && i < count ? bias[first + i] : 0;
}

#endif
