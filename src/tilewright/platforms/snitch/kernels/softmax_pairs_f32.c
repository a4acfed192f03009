/* ---
op: Softmax
types: {X: float32, Y: float32}
when: {INNER: "== 1", AXIS: "AXIS % 8 == 0 and AXIS > 0"}
# The largest of a row, powers of two pairs at a time, and their quotients.
cycles:
  blocks: OUTER * eights(AXIS)
  rows: OUTER
  call: some(OUTER)
--- */
#include "tilewright_pairs.h"

/* A power is 2^n e^r, with e^r as in tw_expf. n is found by adding a number so large that what is left are multiples of 128.
 * 128 (n + 127) in the lower half of a word is 2^n as sixteen bits with an exponent of eight, and a dot product with 1 and
 * 0 brings it to 32. At the least argument 2^n is 0. */
struct softmax_pairs_f32_numbers {
    uint64_t pairs[13];
};
#define LEAST (-88.0296936f) /* -127 ln 2 */
#define LARGE (12582912.0f * 128.0f)
#define ONE_AND_ZERO 0x3F80

TW_INLINE void softmax_pairs_f32_begin(struct softmax_pairs_f32_numbers *numbers) {
    const uint32_t given[13] = {tw_bits(LEAST),
                                tw_bits(184.664967f), /* 128 / ln 2 */
                                tw_bits(LARGE),
                                tw_bits(12582912.0f + 127.0f * 128.0f),
                                ONE_AND_ZERO,
                                tw_bits(-0.693145752f / 128.0f),
                                tw_bits(-1.42860677e-6f / 128.0f),
                                tw_bits(1.39824e-3f),
                                tw_bits(8.3337e-3f),
                                tw_bits(4.16665e-2f),
                                tw_bits(0.166666657f),
                                tw_bits(0.5f),
                                tw_bits(1.0f)};
    for (int i = 0; i < 13; i++)
        numbers->pairs[i] = (uint64_t)given[i] << 32 | given[i];
}

/* The largest number of a row, and in `sum` something that is NaN where one of them is. */
TW_INLINE float softmax_pairs_f32_largest(int blocks, float *sum) {
    float lanes[2] __attribute__((aligned(8)));
    float all = 0;
    __asm__ volatile(
        TW_BOTH("ft3", "%[low]") TW_BOTH("ft4", "%[low]") TW_BOTH("ft5", "%[low]") TW_BOTH("ft6", "%[low]")
            TW_NOTHING("ft7") TW_NOTHING("fa0") TW_NOTHING("fa1") TW_NOTHING("fa2") TW_STREAMS_ON TW_FREP_8("%[more]")
                TW_VFMAX_S("ft3", "ft3", "ft0") TW_VFADD_S("ft7", "ft7", "ft1") TW_VFMAX_S("ft4", "ft4", "ft0")
                    TW_VFADD_S("fa0", "fa0", "ft1") TW_VFMAX_S("ft5", "ft5", "ft0") TW_VFADD_S("fa1", "fa1", "ft1")
                        TW_VFMAX_S("ft6", "ft6", "ft0") TW_VFADD_S("fa2", "fa2", "ft1")
                            TW_STREAMS_OFF TW_VFMAX_S("ft3", "ft3", "ft4") TW_VFMAX_S("ft5", "ft5", "ft6")
                                TW_VFMAX_S("ft3", "ft3", "ft5") "fsd ft3, 0(%[lanes])\n" TW_SUM_OF_FOUR(
                                    "%[all]", "ft7", "fa0", "fa1", "fa2")
        : [all] "+f"(all)
        : [more] "r"(blocks - 1), [low] "f"(-INFINITY), [lanes] "r"(lanes)
        : TW_EIGHT_SUMS, TW_STREAM_REGISTERS, "memory");
    *sum = all;
    return lanes[0] > lanes[1] ? lanes[0] : lanes[1];
}

#define LOAD(number, at) "fld " number ", 8*" #at "(%[numbers])\n"
/* vfdotpex.s.h, of sixteen bits as fmode says. */
#define DOT(d, a, b) ".insn r 0x33, 0, 0x4B, " d ", " a ", " b "\n"

/* Writes the powers of a row, less its largest number, which is given, and returns their sum. */
TW_INLINE float softmax_pairs_f32_powers(int blocks, float number, const struct softmax_pairs_f32_numbers *numbers) {
    int left = 2 * blocks;
    __asm__ volatile(
        LOAD("fa1", 0) LOAD("fa2", 1) LOAD("fa3", 2) LOAD("ft10", 3) LOAD("fs8", 4) LOAD("fa4", 5) LOAD("fa5", 6)
            LOAD("fa6", 7) LOAD("fa7", 8) LOAD("fs0", 9) LOAD("fs1", 10) LOAD("ft8", 11) LOAD("ft9", 12)
                TW_NOTHING("ft11") TW_NOTHING("fs2") TW_BOTH("fa0", "%[number]") TW_STREAMS_ON ".balign 32\n1:\n"
        /* the argument, at least LEAST */
        TW_VFSUB_S("ft3", "ft0", "fa0")
            TW_VFSUB_S("fs3", "ft0", "fa0") "addi %[left], %[left], -1\n" TW_VFMAX_S("ft3", "ft3", "fa1")
                TW_VFMAX_S("fs3", "fs3", "fa1")
        /* 128 n */
        TW_VFMUL_PAIRS("ft4", "ft3", "fa2") TW_VFMUL_PAIRS("fs4", "fs3", "fa2") TW_VFADD_S("ft4", "ft4", "fa3")
            TW_VFADD_S("fs4", "fs4", "fa3") TW_VFSUB_S("ft5", "ft4", "fa3") TW_VFSUB_S("fs5", "fs4", "fa3")
        /* r, and beside it 2^n */
        TW_VFMAC_PAIRS("ft3", "ft5", "fa4") TW_VFMAC_PAIRS("fs3", "fs5", "fa4") TW_VFADD_S("ft4", "ft5", "ft10")
            TW_VFADD_S("fs4", "fs5", "ft10") TW_VFSUB_S("fs9", "fa1", "fa1") TW_VFSUB_S("fs10", "fa1", "fa1")
                TW_VFMAC_PAIRS("ft3", "ft5", "fa5") TW_VFMAC_PAIRS("fs3", "fs5", "fa5") DOT("fs9", "ft4", "fs8")
                    DOT("fs10", "fs4", "fs8")
        /* e^r */
        TW_VFMUL_PAIRS("ft6", "ft3", "fa7") TW_VFMUL_PAIRS("fs6", "fs3", "fa7") TW_VFMUL_PAIRS("ft5", "ft3", "ft3")
            TW_VFMUL_PAIRS("fs5", "fs3", "fs3") TW_VFMUL_PAIRS("ft7", "ft3", "fs1") TW_VFMUL_PAIRS("fs7", "fs3", "fs1")
                TW_VFADD_S("ft6", "ft6", "fs0") TW_VFADD_S("fs6", "fs6", "fs0") TW_VFADD_S("ft7", "ft7", "ft8")
                    TW_VFADD_S("fs7", "fs7", "ft8") TW_VFADD_S("ft3", "ft3", "ft9") TW_VFADD_S("fs3", "fs3", "ft9")
                        TW_VFMAC_PAIRS("ft6", "ft5", "fa6") TW_VFMAC_PAIRS("fs6", "fs5", "fa6")
                            TW_VFMAC_PAIRS("ft7", "ft5", "ft6") TW_VFMAC_PAIRS("fs7", "fs5", "fs6")
                                TW_VFMAC_PAIRS("ft3", "ft5", "ft7") TW_VFMAC_PAIRS("fs3", "fs5", "fs7")
        /* the power, and its sum */
        TW_VFMUL_PAIRS("ft2", "ft3", "fs9") TW_VFMUL_PAIRS("ft2", "fs3", "fs10") TW_VFMAC_PAIRS("ft11", "ft3", "fs9")
            TW_VFMAC_PAIRS("fs2", "fs3", "fs10") "bnez %[left], 1b\n" TW_STREAMS_OFF
                                                 "fmv.w.x %[number], zero\n" TW_VFADD_S("ft11", "ft11", "fs2")
                                                     TW_VFSUM_S("%[number]", "ft11")
        : [number] "+f"(number), [left] "+r"(left)
        : [numbers] "r"(numbers)
        : "ft3", "ft4", "ft5", "ft6", "ft7", "fa0", "fa1", "fa2", "fa3", "fa4", "fa5", "fa6", "fa7", "fs0", "fs1",
          "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "ft8", "ft9", "ft10", "ft11",
          TW_STREAM_REGISTERS, "memory");
    return number;
}

/* Sixteen bits of the FPU have an exponent of eight (3), or of five (0). */
#define HALVES_OF(mode)                                                                                                \
    do {                                                                                                               \
        tw_fpu_fence();                                                                                                \
        __asm__ volatile("csrw 0x800, %0" ::"r"(mode) : "memory");                                                     \
    } while (0)

static void softmax_pairs_f32(const float *X, float *Y, int OUTER, int AXIS) {
    const int blocks = AXIS / 8;
    struct softmax_pairs_f32_numbers numbers;
    softmax_pairs_f32_begin(&numbers);
    tw_rows_of_pairs(AXIS);
    for (int row = 0; row < OUTER; row++, X += AXIS, Y += AXIS) {
        float sum;
        TW_STREAM_READ(0, 1, X);
        TW_STREAM_READ(1, 1, X);
        const float largest = softmax_pairs_f32_largest(blocks, &sum);
        if (!(sum == sum && largest - largest == 0.0f)) {
            sum = 0.0f;
            for (int i = 0; i < AXIS; i++)
                sum += Y[i] = tw_expf(X[i] - largest);
            for (int i = 0; i < AXIS; i++)
                Y[i] /= sum;
            continue;
        }
        HALVES_OF(3);
        TW_STREAM_READ(0, 1, X);
        TW_STREAM_WRITE(2, 1, Y);
        const float factor = 1.0f / softmax_pairs_f32_powers(blocks, largest, &numbers);
        TW_STREAM_AWAIT(2);
        HALVES_OF(0);
        TW_STREAM_READ(0, 1, Y);
        TW_STREAM_WRITE(2, 1, Y);
        __asm__ volatile(TW_BOTH("ft11", "%[factor]") TW_STREAMS_ON TW_FREP("%[more]", 4)
                             TW_VFMUL_PAIRS("ft2", "ft0", "ft11") TW_VFMUL_PAIRS("ft2", "ft0", "ft11")
                                 TW_VFMUL_PAIRS("ft2", "ft0", "ft11") TW_VFMUL_PAIRS("ft2", "ft0", "ft11")
                                     TW_STREAMS_OFF
                         :
                         : [more] "r"(blocks - 1), [factor] "f"(factor)
                         : TW_STREAM_REGISTERS, "ft11", "memory");
        TW_STREAM_AWAIT(2);
    }
}
#undef LEAST
#undef LARGE
#undef LOAD
#undef DOT
#undef ONE_AND_ZERO
#undef HALVES_OF
