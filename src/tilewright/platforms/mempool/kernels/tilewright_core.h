/* What Xpulpimg does in one instruction and plain C in several. */
#ifndef TILEWRIGHT_CORE_H
#define TILEWRIGHT_CORE_H

#include <stdint.h>

#define TW_CORE_LIMITS

/* p.min and p.max; what is known at compile time stays with the compiler. */
static inline int tw_min(int a, int b) {
    int least;
    if (__builtin_constant_p(a < b))
        return a < b ? a : b;
    __asm__(".insn r 0x33, 4, 0x02, %0, %1, %2" : "=r"(least) : "r"(a), "r"(b));
    return least;
}
static inline int tw_max(int a, int b) {
    int most;
    if (__builtin_constant_p(a > b))
        return a > b ? a : b;
    __asm__(".insn r 0x33, 6, 0x02, %0, %1, %2" : "=r"(most) : "r"(a), "r"(b));
    return most;
}

/* p.clip where the limits are those of a type. The compiler is told what it cannot see: conversions then cost nothing. */
static inline __attribute__((always_inline)) int32_t tw_clamp(int32_t x, int32_t lo, int32_t hi) {
    int32_t clamped;
    if (__builtin_constant_p(x >= lo && x <= hi) && x >= lo && x <= hi)
        return x;
    if (__builtin_constant_p(lo) && __builtin_constant_p(hi) && lo == -128 && hi == 127)
        __asm__(".insn r 0x33, 1, 0x0A, %0, %1, x8" : "=r"(clamped) : "r"(x));
    else if (__builtin_constant_p(lo) && __builtin_constant_p(hi) && lo == 0 && hi == 255)
        __asm__(".insn r 0x33, 2, 0x0A, %0, %1, x9" : "=r"(clamped) : "r"(x));
    else
        clamped = tw_min(tw_max(x, lo), hi);
    if (clamped < lo || clamped > hi)
        __builtin_unreachable();
    return clamped;
}

/* Floats are in integer registers, and the compiler knows none of their instructions: it would call a function for each. */

/* x * mul / 2^shift, which a fused product rounds once: fcvt.s.w, fmul.s, fmadd.s. */
#define TW_CORE_SCALES
static inline __attribute__((always_inline)) int32_t tw_scale_untied(int32_t x, int32_t mul, int shift, int32_t zero) {
    const uint32_t magic = 0x4B400000u /* 1.5 * 2^23 */;
    uint32_t factor, rounded;
    __asm__(".insn r 0x53, 0, 0x68, %0, %1, x0" : "=r"(factor) : "r"(mul));
    __asm__(".insn r 0x53, 0, 0x08, %0, %1, %2" : "=r"(factor) : "r"(factor), "r"((uint32_t)(127 - shift) << 23));
    __asm__(".insn r 0x53, 0, 0x68, %0, %1, x0" : "=r"(rounded) : "r"(x));
    __asm__(".insn r4 0x43, 0, 0, %0, %1, %2, %3" : "=r"(rounded) : "r"(rounded), "r"(factor), "r"(magic));
    return (int32_t)(rounded + ((uint32_t)zero - magic));
}

/* fmax.s, fmin.s, fcvt.w.s. Limits of an integer type hold before rounding, too; NaN is below all of them. */
#define TW_CORE_QUANTISES
static inline __attribute__((always_inline)) int32_t tw_quantised(float x, float zero, float lo, float hi) {
    int32_t whole;
    __asm__(".insn r 0x53, 1, 0x14, %1, %1, %2\n.insn r 0x53, 0, 0x14, %1, %1, %3\n.insn r 0x53, 0, 0x60, %0, %1, x0"
            : "=r"(whole), "+&r"(x)
            : "r"(lo - zero), "r"(hi - zero));
    return whole + (int32_t)zero;
}

/* fdiv.s. */
#define TW_CORE_DIVIDES
static inline __attribute__((always_inline)) float tw_divided(float a, float b) {
    float quotient;
    __asm__(".insn r 0x53, 0, 0x0C, %0, %1, %2" : "=r"(quotient) : "r"(a), "r"(b));
    return quotient;
}
static inline __attribute__((always_inline)) int32_t tw_quantised_by(float x, float scale, float high, float low,
                                                                     float zero, float lo, float hi) {
    (void)high, (void)low;
    return tw_quantised(tw_divided(x, scale), zero, lo, hi);
}

#endif
