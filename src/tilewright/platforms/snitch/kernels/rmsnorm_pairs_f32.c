/* ---
op: RMSNormalization
types: {X: float32, scale: float32, Y: float32}
when: {INNER: "== 1", AXIS: "% 16 == 0"}
# Squares of a row are added up in eight pairs; then four pairs at a time are scaled.
cycles:
  blocks: OUTER * sixteens(AXIS)
  rows: OUTER
  call: some(OUTER)
--- */
#include "tilewright_streams.h"

#define ADDED(d, a) ".insn r 0x33, 0, 0x41, " d ", " d ", " a "\n"     /* vfadd.s */
#define SCALED(d, a, b) ".insn r 0x33, 0, 0x43, " d ", " a ", " b "\n" /* vfmul.s */

/* The sum of all products of both streams. */
TW_INLINE float rmsnorm_pairs_f32_sum(int blocks) {
    float sum = 0;
    __asm__ volatile(TW_STREAMS_ON TW_SUMS(TW_VFMUL_S, TW_VFMAC_S) TW_STREAMS_OFF ADDED("ft3", "ft7")
                         ADDED("ft4", "fa0") ADDED("ft5", "fa1") ADDED("ft6", "fa2") ADDED("ft3", "ft5")
                             ADDED("ft4", "ft6") ADDED("ft3", "ft4") TW_VFSUM_S("%[sum]", "ft3")
                     : [sum] "+f"(sum)
                     : [more] "r"(blocks - 2)
                     : TW_EIGHT_SUMS, TW_STREAM_REGISTERS, "memory");
    return sum;
}

static void rmsnorm_pairs_f32(const float *X, const float *scale, float *Y, int OUTER, int AXIS, float epsilon) {
    TW_STREAM_TIMES(0, 1);
    TW_STREAM_TIMES(1, 1);
    TW_STREAM_TIMES(2, 1);
    TW_STREAM_LOOP(0, 0, AXIS / 2, 8);
    TW_STREAM_LOOP(1, 0, AXIS / 2, 8);
    TW_STREAM_LOOP(2, 0, AXIS / 2, 8);
    for (int row = 0; row < OUTER; row++, X += AXIS, Y += AXIS) {
        TW_STREAM_READ(0, 1, X);
        TW_STREAM_READ(1, 1, X);
        const float factor = 1.0f / sqrtf(rmsnorm_pairs_f32_sum(AXIS / 16) / (float)AXIS + epsilon);
        TW_STREAM_READ(0, 1, X);
        TW_STREAM_READ(1, 1, scale);
        TW_STREAM_WRITE(2, 1, Y);
        __asm__ volatile(".insn r 0x33, 0, 0x58, ft11, %[factor], %[factor]\n" TW_STREAMS_ON TW_FREP_8("%[more]")
                             SCALED("ft3", "ft0", "ft11") SCALED("ft4", "ft0", "ft11") SCALED("ft5", "ft0", "ft11")
                                 SCALED("ft6", "ft0", "ft11") SCALED("ft2", "ft3", "ft1") SCALED("ft2", "ft4", "ft1")
                                     SCALED("ft2", "ft5", "ft1") SCALED("ft2", "ft6", "ft1") TW_STREAMS_OFF
                         :
                         : [more] "r"(AXIS / 8 - 1), [factor] "f"(factor)
                         : TW_EIGHT_SUMS, TW_STREAM_REGISTERS, "ft11", "memory");
        TW_STREAM_AWAIT(2);
    }
}
#undef ADDED
#undef SCALED
