/* ---
op: LayerNormalization
types: {X: float32, Scale: float32, B: float32, Y: float32}
when: {INNER: "== 1", AXIS: "AXIS % 8 == 0 and AXIS > 0"}
# Elements of a row are added up in four pairs, then their squares; at last four pairs at a time are scaled.
cycles:
  blocks: OUTER * eights(AXIS)
  rows: OUTER
  call: some(OUTER)
--- */
#include "tilewright_pairs.h"

/* The sum of a row. */
TW_INLINE float layernorm_pairs_f32_sum(int blocks) {
    float sum = 0;
    __asm__ volatile(
        TW_NOTHING("ft3") TW_NOTHING("ft4") TW_NOTHING("ft5") TW_NOTHING("ft6") TW_STREAMS_ON TW_FREP("%[more]", 4)
            TW_VFADD_S("ft3", "ft3", "ft0") TW_VFADD_S("ft4", "ft4", "ft0") TW_VFADD_S("ft5", "ft5", "ft0")
                TW_VFADD_S("ft6", "ft6", "ft0") TW_STREAMS_OFF TW_SUM_OF_FOUR("%[sum]", "ft3", "ft4", "ft5", "ft6")
        : [sum] "+f"(sum)
        : [more] "r"(blocks - 1)
        : TW_EIGHT_SUMS, TW_STREAM_REGISTERS, "memory");
    return sum;
}

/* The sum of the squares of a row, less the mean. */
TW_INLINE float layernorm_pairs_f32_squares(int blocks, float mean) {
    float sum = 0;
    __asm__ volatile(TW_BOTH("ft11", "%[mean]") TW_NOTHING("ft3") TW_NOTHING("ft4") TW_NOTHING("ft5") TW_NOTHING("ft6")
                         TW_STREAMS_ON TW_FREP_8("%[more]") TW_VFSUB_S("ft7", "ft0", "ft11")
                             TW_VFSUB_S("fa0", "ft0", "ft11") TW_VFSUB_S("fa1", "ft0", "ft11")
                                 TW_VFSUB_S("fa2", "ft0", "ft11") TW_VFMAC_PAIRS("ft3", "ft7", "ft7")
                                     TW_VFMAC_PAIRS("ft4", "fa0", "fa0") TW_VFMAC_PAIRS("ft5", "fa1", "fa1")
                                         TW_VFMAC_PAIRS("ft6", "fa2", "fa2")
                                             TW_STREAMS_OFF TW_SUM_OF_FOUR("%[sum]", "ft3", "ft4", "ft5", "ft6")
                     : [sum] "+f"(sum)
                     : [more] "r"(blocks - 1), [mean] "f"(mean)
                     : TW_EIGHT_SUMS, TW_STREAM_REGISTERS, "ft11", "memory");
    return sum;
}

/* Writes a row: stream 1 gives what it is multiplied by and what is added, four pairs each. */
#define NORMALISED(count, last)                                                                                        \
    __asm__ volatile(TW_BOTH("ft11", "%[mean]") TW_BOTH("ft10", "%[factor]") TW_STREAMS_ON TW_FREP("%[more]", count)   \
                         TW_VFSUB_S("ft3", "ft0", "ft11") TW_VFSUB_S("ft4", "ft0", "ft11")                             \
                             TW_VFSUB_S("ft5", "ft0", "ft11") TW_VFSUB_S("ft6", "ft0", "ft11")                         \
                                 TW_VFMUL_PAIRS("ft3", "ft3", "ft10") TW_VFMUL_PAIRS("ft4", "ft4", "ft10")             \
                                     TW_VFMUL_PAIRS("ft5", "ft5", "ft10") TW_VFMUL_PAIRS("ft6", "ft6", "ft10")         \
                                         last TW_STREAMS_OFF                                                           \
                     :                                                                                                 \
                     : [more] "r"(blocks - 1), [mean] "f"(mean), [factor] "f"(factor)                                  \
                     : TW_EIGHT_SUMS, TW_STREAM_REGISTERS, "ft10", "ft11", "memory")
#define FOUR(INSN, to3, to4, to5, to6)                                                                                 \
    INSN(to3, "ft3", "ft1") INSN(to4, "ft4", "ft1") INSN(to5, "ft5", "ft1") INSN(to6, "ft6", "ft1")

static void layernorm_pairs_f32(const float *X, const float *Scale, const float *B, float *Y, int OUTER, int AXIS,
                                float epsilon) {
    const int blocks = AXIS / 8;
    tw_rows_of_pairs(AXIS);
    if (B) {
        const int to_bias = (int)((intptr_t)B - (intptr_t)Scale);
        TW_STREAM_LOOP(1, 0, 4, 8);
        TW_STREAM_LOOP(1, 1, 2, to_bias - 24);
        TW_STREAM_LOOP(1, 2, blocks, 8 - to_bias);
    }
    for (int row = 0; row < OUTER; row++, X += AXIS, Y += AXIS) {
        TW_STREAM_READ(0, 1, X);
        const float mean = layernorm_pairs_f32_sum(blocks) / (float)AXIS;
        TW_STREAM_READ(0, 1, X);
        const float factor = 1.0f / sqrtf(layernorm_pairs_f32_squares(blocks, mean) / (float)AXIS + epsilon);
        TW_STREAM_READ(0, 1, X);
        TW_STREAM_WRITE(2, 1, Y);
        if (B) {
            TW_STREAM_READ(1, 3, Scale);
            NORMALISED(16,
                       FOUR(TW_VFMUL_PAIRS, "ft3", "ft4", "ft5", "ft6") FOUR(TW_VFADD_S, "ft2", "ft2", "ft2", "ft2"));
        } else {
            TW_STREAM_READ(1, 1, Scale);
            NORMALISED(12, FOUR(TW_VFMUL_PAIRS, "ft2", "ft2", "ft2", "ft2"));
        }
        TW_STREAM_AWAIT(2);
    }
}
#undef NORMALISED
#undef FOUR
