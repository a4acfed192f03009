/* ---
op: QuantizeLinear
types: {x: float32, y_scale: float32, y_zero_point: T, y: T}
T: [int8, uint8]
when: {reciprocal: ">= 0"} # scale and zero point are numbers that are known
# Four at a time, which cores take in turn.
cycles:
  fours: steps(whole_fours(SIZE), PARTS)
  single: some(left_of_fours(SIZE))
  call: 1
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* fdiv.s, fmax.s, fmin.s, fcvt.w.s: floats are in integer registers. Limits hold before rounding, too; NaN is below all. */
TW_INLINE int32_t quantised(float x, float scale, float least, float most) {
    int32_t whole;
    __asm__(".insn r 0x53, 0, 0x0C, %0, %0, %1" : "+r"(x) : "r"(scale));
    __asm__(".insn r 0x53, 1, 0x14, %0, %0, %1" : "+r"(x) : "r"(least));
    __asm__(".insn r 0x53, 0, 0x14, %0, %0, %1" : "+r"(x) : "r"(most));
    __asm__(".insn r 0x53, 0, 0x60, %0, %1, x0" : "=r"(whole) : "r"(x));
    return whole;
}

static void quantize_f32(const float *x, T *y, int SIZE, float scale, int zero, int PART, int PARTS) {
    const int lo = ((T)-1) < 0 ? -128 : 0;
    const float least = (float)(lo - zero), most = (float)(lo + 255 - zero);
    int i = 4 * PART;
    for (; i + 4 <= SIZE; i += 4 * PARTS) {
        const float a = x[i], b = x[i + 1], c = x[i + 2], d = x[i + 3];
        const int32_t e = quantised(a, scale, least, most), f = quantised(b, scale, least, most);
        const int32_t g = quantised(c, scale, least, most), h = quantised(d, scale, least, most);
        y[i] = (T)(e + zero), y[i + 1] = (T)(f + zero), y[i + 2] = (T)(g + zero), y[i + 3] = (T)(h + zero);
    }
    for (i = (SIZE & ~3) + PART; i < SIZE; i += PARTS)
        y[i] = (T)(quantised(x[i], scale, least, most) + zero);
}
