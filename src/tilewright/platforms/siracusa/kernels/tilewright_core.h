/* What XpulpV2 does in one instruction and plain C in branches. */
#ifndef TILEWRIGHT_CORE_H
#define TILEWRIGHT_CORE_H

#include <stdint.h>

#define TW_CORE_LIMITS

/* A core's cache holds 512 bytes: what is long is not written down several times. */
#define TW_PRAGMA(text) _Pragma(#text)
#define TW_UNROLL_BY(times) TW_PRAGMA(GCC unroll(times))

/* A branch back costs as much as three operations, and there are no vectors to lose. */
#define TW_ROLLED _Pragma("GCC unroll 4")

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

/* p.fl1: the place of the highest bit of a number that is not 0. */
static inline int tw_highest_bit(uint32_t x) {
    int place;
    __asm__(".insn r 0x33, 1, 0x08, %0, %1, x0" : "=r"(place) : "r"(x));
    return place;
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

/* p.addRN or p.addRNr: (a + b + half) >> shift, where half is 1 << shift >> 1 and shift is not 0. */
#define TW_CORE_ROUNDS
static inline __attribute__((always_inline)) int32_t tw_sum_rounded(int32_t a, int32_t b, int32_t half, int shift) {
    (void)half;
#ifdef __OPTIMIZE__ /* or no compiler knows that it is constant */
    if (__builtin_constant_p(shift)) {
        __asm__(".insn r 0x5B, 6, %3, %0, %1, %2" : "=r"(a) : "r"(a), "r"(b), "i"(shift));
        return a;
    }
#endif
    __asm__(".insn r 0x5B, 6, 0x20, %0, %1, %2" : "+r"(a) : "r"(b), "r"(shift));
    return a;
}
/* p.extractur of the lowest bit that stays, then p.subRNr or p.addRNr of it. */
#define TW_ROUND_BY_BIT(total, code, shift)                                                                            \
    int32_t bit;                                                                                                       \
    __asm__(".insn r 0x33, 1, 0x40, %0, %1, %2\n.insn r 0x5B, " code ", 0x20, %1, %0, %2"                              \
            : "=&r"(bit), "+r"(total)                                                                                  \
            : "r"(shift))
static inline __attribute__((always_inline)) int32_t tw_half_to_odd(int32_t total, int32_t half, int shift) {
    (void)half;
    TW_ROUND_BY_BIT(total, "7", shift);
    return total;
}
static inline __attribute__((always_inline)) int32_t tw_half_to_even(int32_t total, int32_t half, int shift) {
    (void)half;
    TW_ROUND_BY_BIT(total, "6", shift);
    return total;
}

/* Bytes are stored as parts of an int: to the compiler characters might be part of anything, and so might what assembler
 * text stores. Integers of tensors are long. */
struct tw_one_byte {
    int byte : 8;
} __attribute__((packed));
static inline __attribute__((always_inline)) void tw_store_1(void *to, int a) {
    ((struct tw_one_byte *)to)->byte = (int8_t)a;
}

/* Limits of an integer type hold before rounding, too; NaN is below all of them. */
#define TW_CORE_QUANTISES
static inline __attribute__((always_inline)) int32_t tw_quantised(float x, float zero, float lo, float hi) {
    int32_t whole;
    __asm__("fmax.s %1, %1, %2\nfmin.s %1, %1, %3\nfcvt.w.s %0, %1, rne"
            : "=r"(whole), "+&f"(x)
            : "f"(lo - zero), "f"(hi - zero));
    return whole + (int32_t)zero;
}

/* A division takes 14 cycles, and in the open cluster cores wait for the one divider: quotients are products wherever one
 * divisor has many. `high` + `low` is its reciprocal to
 * twice the digits: a product with it is a neighbour of the quotient, and what then remains tells which one (Markstein).
 * That is exact unless all digits of the divisor are ones, or a number on the way is too small or too large. */
#define TW_CORE_DIVIDES
static inline __attribute__((always_inline)) float tw_quotient_by(float a, float b, float high, float low) {
    const float near = __builtin_fmaf(a, high, a * low);
    return __builtin_fmaf(__builtin_fmaf(-near, b, a), high, near);
}
/* Limits hold before the division, too. */
static inline __attribute__((always_inline)) int32_t tw_quantised_by(float x, float scale, float high, float low,
                                                                     float zero, float lo, float hi) {
    int32_t whole;
    __asm__("fmax.s %0, %0, %1\nfmin.s %0, %0, %2" : "+&f"(x) : "f"((lo - zero) * scale), "f"((hi - zero) * scale));
    __asm__("fcvt.w.s %0, %1, rne" : "=r"(whole) : "f"(tw_quotient_by(x, scale, high, low)));
    return whole + (int32_t)zero;
}
static inline __attribute__((always_inline)) float tw_divided(float a, float b) {
    const float high = 1.0f / b, low = __builtin_fmaf(-b, high, 1.0f) * high,
                quotient = tw_quotient_by(a, b, high, low);
    union {
        float real;
        uint32_t bits;
    } divisor = {b}, result = {quotient};
    const int steady =
        ((divisor.bits << 1) >> 24) - 97 <= 60 && (divisor.bits & 0x7FFFFF) != 0x7FFFFF; /* 2^-30 to 2^30 */
    return steady && ((result.bits << 1) >> 24) - 77 <= 100 ? quotient : a / b;          /* 2^-50 to 2^50 */
}

/* Four bytes as one word, at any address: pv.packlo.b, pv.packhi.b. */
#define TW_QUADS 1
static inline __attribute__((always_inline)) void tw_store_4(void *to, int a, int b, int c, int d) {
    unsigned word;
    __asm__(".insn r 0x57, 1, 0x70, %0, %2, %1\n.insn r 0x57, 1, 0x6C, %0, %4, %3"
            : "=&r"(word)
            : "r"(a), "r"(b), "r"(c), "r"(d));
    *(unsigned *)to = word;
}

#endif
