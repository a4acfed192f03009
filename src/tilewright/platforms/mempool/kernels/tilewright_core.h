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

#endif
