/* ---
op: QuantizeLinear
types: {x: float32, y_scale: float32, y_zero_point: T, y: T}
T: [int8, uint8]
when: {reciprocal: "== 1"}
# Four at a time, then one by one.
cycles:
  fours: whole_fours(SIZE)
  single: left_of_fours(SIZE)
  call: some(SIZE)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Four numbers, in ft0 to ft3, and their quotients in ft4 to ft7, as those of tw_quotient_by. */
#define QUANTIZE_FOUR(STEP) STEP("0", "4") STEP("1", "5") STEP("2", "6") STEP("3", "7")
#define QUANTIZE_RAISE(x, q) "fmax.s ft" x ", ft" x ", %[least]\n"
#define QUANTIZE_LIMIT(x, q) "fmin.s ft" x ", ft" x ", %[most]\n"
#define QUANTIZE_LOW(x, q) "fmul.s ft" q ", ft" x ", %[low]\n"
#define QUANTIZE_HIGH(x, q) "fmadd.s ft" q ", ft" x ", %[high], ft" q "\n"
#define QUANTIZE_REST(x, q) "fnmsub.s ft" x ", ft" q ", %[scale], ft" x "\n"
#define QUANTIZE_ROUND(x, q) "fcvt.w.s t" x ", ft" q ", rne\n"

static void quantize_f32(const float *x, T *y, int SIZE, float scale, int zero) {
    const int lo = (T)(-1) < 0 ? -128 : 0;
    const float high = 1.0f / scale, low = TW_FMA(-scale, high, 1.0f) * high;
    const float least = (float)(lo - zero) * scale,
                most = (float)(lo + 255 - zero) * scale; /* become lo and lo + 255 */
    if (SIZE >= 4)
        __asm__ volatile(
            ".option push\n.option norvc\n" TW_REPEAT(
                "%[fours]",
                "74") "flw ft0, 0(%[x])\nflw ft1, 4(%[x])\n"
                      "flw ft2, 8(%[x])\nflw ft3, 12(%[x])\naddi %[x], %[x], 16\n" QUANTIZE_FOUR(QUANTIZE_RAISE)
                          QUANTIZE_FOUR(QUANTIZE_LIMIT) QUANTIZE_FOUR(QUANTIZE_LOW) QUANTIZE_FOUR(QUANTIZE_HIGH)
                              QUANTIZE_FOUR(QUANTIZE_REST) QUANTIZE_FOUR(QUANTIZE_HIGH)
                                  QUANTIZE_FOUR(QUANTIZE_ROUND) ".insn r 0x57, 1, 0x70, t0, t1, "
                                                                "t0\n.insn r 0x57, 1, 0x6C, t0, t3, "
                                                                "t2\n" /* pv.packlo.b, pv.packhi.b */
                                                                ".insn r 0x57, 5, 0x00, t0, t0, "
                                                                "%[zero]\n" /* pv.add.sc.b */
                                                                ".insn s 0x2B, 2, t0, 4(%[y])\n.option "
                                                                "pop\n" /* p.sw, pointer moves */
            : [x] "+r"(x), [y] "+r"(y)
            : [fours] "r"(SIZE >> 2), [scale] "f"(scale), [high] "f"(high), [low] "f"(low), [least] "f"(least),
              [most] "f"(most), [zero] "r"(zero)
            : "t0", "t1", "t2", "t3", "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "memory");
    for (int i = 0; i < (SIZE & 3); i++)
        y[i] = (T)tw_quantised_by(x[i], scale, high, low, (float)zero, (float)lo, (float)lo + 255.0f);
}
