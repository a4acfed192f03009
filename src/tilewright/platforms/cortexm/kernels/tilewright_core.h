/* What Cortex-M does in fewer instructions than plain C says. */
#ifndef TILEWRIGHT_CORE_H
#define TILEWRIGHT_CORE_H

#include "tilewright_arm.h"

/* There are no vectors to lose. */
#if !defined(__clang__)
#define TW_ROLLED _Pragma("GCC unroll 8")
#endif

#define TW_CORE_LIMITS
static inline int tw_min(int a, int b) { return a < b ? a : b; }
static inline int tw_max(int a, int b) { return a > b ? a : b; }
/* SSAT and USAT, where the limits are those of bytes. The compiler is told what it cannot see. */
TW_ARM_INLINE int32_t tw_clamp(int32_t x, int32_t lo, int32_t hi) {
#if TW_ARM_DSP
    if (__builtin_constant_p(lo) && __builtin_constant_p(hi) && !__builtin_constant_p(x)) {
        int32_t clamped = x;
        if (lo == -128 && hi == 127)
            __asm__("ssat %0, #8, %1" : "=r"(clamped) : "r"(x));
        else if (lo == 0 && hi == 255)
            __asm__("usat %0, #8, %1" : "=r"(clamped) : "r"(x));
        else
            clamped = tw_min(tw_max(x, lo), hi);
        if (clamped < lo || clamped > hi)
            __builtin_unreachable();
        return clamped;
    }
#endif
    return tw_min(tw_max(x, lo), hi);
}

/* zero + x * mul / 2^shift rounded, where nothing lies halfway: SMMLA and a shift. */
#define TW_CORE_SCALES
TW_ARM_INLINE int32_t tw_scale_untied(int32_t x, int32_t mul, int shift, int32_t zero) {
    const int rest = shift - 25;
    const int32_t rounding = (int32_t)((uint32_t)zero << rest) + (1 << rest >> 1);
    return tw_upper_product(x, (int32_t)((uint32_t)mul << 7), rounding) >> rest;
}

/* VCVTR rounds half to even and limits what is too large. */
#if TW_ARM_ROUNDS
#define TW_CORE_QUANTISES
TW_ARM_INLINE int32_t tw_quantised(float x, float zero, float lo, float hi) {
    const int32_t scaled = tw_sum_limited(tw_nearest(x), (int32_t)zero);
    return x == x ? tw_clamp(scaled, (int32_t)lo, (int32_t)hi) : (int32_t)lo;
}
#endif

#endif
