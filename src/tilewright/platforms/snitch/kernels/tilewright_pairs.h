/* Sums and products of two lanes of float32, in loops of the FPU: what norms and softmax have in common. */
#ifndef TILEWRIGHT_PAIRS_H
#define TILEWRIGHT_PAIRS_H

#include "tilewright_streams.h"

#define TW_VFADD_S(d, a, b) ".insn r 0x33, 0, 0x41, " d ", " a ", " b "\n"
#define TW_VFSUB_S(d, a, b) ".insn r 0x33, 0, 0x42, " d ", " a ", " b "\n"
#define TW_VFMUL_PAIRS(d, a, b) ".insn r 0x33, 0, 0x43, " d ", " a ", " b "\n"
#define TW_VFMAX_S(d, a, b) ".insn r 0x33, 0, 0x46, " d ", " a ", " b "\n"
#define TW_VFMAC_PAIRS(d, a, b) ".insn r 0x33, 0, 0x48, " d ", " a ", " b "\n"
/* A number in both lanes (vfcpka.s.s), and zeros. */
#define TW_BOTH(d, a) ".insn r 0x33, 0, 0x58, " d ", " a ", " a "\n"
#define TW_NOTHING(d) "fcvt.d.w " d ", zero\n"
/* So many instructions behind it run once more than the register says. */
#define TW_FREP(register, count) ".insn i 0x0B, 0, x1, " register ", " #count "-1\n"
/* The sum of four pairs, all eight lanes. */
#define TW_SUM_OF_FOUR(sum, a, b, c, d) TW_VFADD_S(a, a, b) TW_VFADD_S(c, c, d) TW_VFADD_S(a, a, c) TW_VFSUM_S(sum, a)

/* Streams 0 and 1 read, and stream 2 writes, rows of so many elements. */
TW_INLINE void tw_rows_of_pairs(int elements) {
    TW_STREAM_TIMES(0, 1);
    TW_STREAM_TIMES(1, 1);
    TW_STREAM_TIMES(2, 1);
    TW_STREAM_LOOP(0, 0, elements / 2, 8);
    TW_STREAM_LOOP(1, 0, elements / 2, 8);
    TW_STREAM_LOOP(2, 0, elements / 2, 8);
}

#endif
