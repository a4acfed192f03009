/* ---
op: QuantizeLinear
types: {x: float32, y_scale: float32, y_zero_point: T, y: T}
T: [int8, uint8]
when: {reciprocal: "== 1"}
# Four at a time, then one by one; cores wait for the unit that they share.
cycles:
  fours: whole_fours(SIZE)
  meetings: FPU_OTHERS * whole_fours(SIZE)
  single: left_of_fours(SIZE)
  call: some(SIZE)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Numbers in ft0 to ft3, and their quotients in ft4 to ft7, as those of tw_quotient_by. */
#define QUANTIZE_LOAD(x, at) "flw ft" x ", " at "(%[x])\n"
#define QUANTIZE_RAISE(x) "fmax.s ft" x ", ft" x ", %[least]\n"
#define QUANTIZE_LOW(x, q) "fmul.s ft" q ", ft" x ", %[low]\n"
#define QUANTIZE_HIGH(x, q) "fmadd.s ft" q ", ft" x ", %[high], ft" q "\n"
#define QUANTIZE_REST(x, q) "fnmsub.s ft" x ", ft" q ", %[scale], ft" x "\n"
#define QUANTIZE_ROUND(x, q) "fcvt.w.s t" x ", ft" q ", rne\n"
#define QUANTIZE_LIMIT(x) ".insn r 0x33, 4, 0x02, t" x ", t" x ", %[most]\n" /* p.min */
/* What is too large, or has no quotient because of that, is converted to the largest integer. Operations of the unit that
 * two cores share take turns with others, as far as there are some. */
#define QUANTIZE_FOUR                                                                                                  \
    QUANTIZE_LOAD("0", "0")                                                                                            \
    QUANTIZE_LOAD("1", "4")                                                                                            \
    QUANTIZE_RAISE("0")                                                                                                \
    QUANTIZE_LOAD("2", "8")                                                                                            \
    QUANTIZE_RAISE("1")                                                                                                \
    QUANTIZE_LOAD("3", "12")                                                                                           \
    QUANTIZE_RAISE("2")                                                                                                \
    "addi %[x], %[x], 16\n" QUANTIZE_RAISE("3") QUANTIZE_LOW("0", "4") QUANTIZE_LOW("1", "5") QUANTIZE_HIGH("0", "4")  \
        QUANTIZE_HIGH("1", "5") QUANTIZE_REST("0", "4") QUANTIZE_REST("1", "5") QUANTIZE_HIGH("0", "4")                \
            QUANTIZE_HIGH("1", "5") QUANTIZE_ROUND("0", "4") QUANTIZE_LOW("2", "6") QUANTIZE_LIMIT("0")                \
                QUANTIZE_ROUND("1", "5") QUANTIZE_LOW("3", "7") QUANTIZE_LIMIT("1") QUANTIZE_HIGH(                     \
                    "2", "6") ".insn r 0x57, 1, 0x70, t0, t1, t0\n" /* pv.packlo.b */ QUANTIZE_HIGH("3", "7")          \
                    QUANTIZE_REST("2", "6") QUANTIZE_HIGH("2", "6") QUANTIZE_ROUND("2", "6") QUANTIZE_REST("3", "7")   \
                        QUANTIZE_LIMIT("2") QUANTIZE_HIGH("3", "7") QUANTIZE_ROUND("3", "7")                           \
                            QUANTIZE_LIMIT("3") ".insn r 0x57, 1, 0x6C, t0, t3, t2\n"      /* pv.packhi.b */           \
                                                ".insn r 0x57, 5, 0x00, t0, t0, %[zero]\n" /* pv.add.sc.b */           \
                                                ".insn s 0x2B, 2, t0, 4(%[y])\n"           /* p.sw, pointer moves */

static void quantize_f32(const float *x, T *y, int SIZE, float scale, int zero) {
    const int lo = (T)(-1) < 0 ? -128 : 0;
    const float high = 1.0f / scale, low = TW_FMA(-scale, high, 1.0f) * high;
    const float least = (float)(lo - zero) * scale; /* becomes lo */
    if (SIZE >= 4)
        __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[fours]", "74") QUANTIZE_FOUR ".option pop\n"
                         : [x] "+&r"(x), [y] "+&r"(y)
                         : [fours] "r"(SIZE >> 2), [scale] "f"(scale), [high] "f"(high), [low] "f"(low),
                           [least] "f"(least), [most] "r"(lo + 255 - zero), [zero] "r"(zero)
                         : "t0", "t1", "t2", "t3", "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "memory");
    for (int i = 0; i < (SIZE & 3); i++)
        y[i] = (T)tw_quantised_by(x[i], scale, high, low, (float)zero, (float)lo, (float)lo + 255.0f);
}
