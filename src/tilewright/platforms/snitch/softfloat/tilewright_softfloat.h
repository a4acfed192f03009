/* Floats by integers, for cores without an FPU. */
#ifndef TILEWRIGHT_FLOATS_H
#define TILEWRIGHT_FLOATS_H

#include <stdint.h>

#define TW_SIGN 0x80000000u
#define TW_INFINITE 0x7F800000u
#define TW_NAN 0x7FC00000u
#define TW_RARELY(x) __builtin_expect(!!(x), 0)

static inline uint32_t tw_exponent(uint32_t a) { return a << 1 >> 24; }
static inline int tw_is_nan(uint32_t a) { return a << 1 > TW_INFINITE << 1; }
/* Whether its significand has no leading one: zero, a number below all others, infinity or NaN. */
static inline int tw_is_special(uint32_t exponent) { return exponent - 1 >= 254; }

/* Shifts to the right; the last bit tells that something was lost. */
static inline uint32_t tw_shifted(uint32_t x, uint32_t by) {
    const uint32_t left = x >> by;
    return left | (left << by != x);
}

/* Adds a significand of 24 bits and `below` more to the bits of a float, rounded to the nearest. */
static inline uint32_t tw_rounded(uint32_t head, uint32_t x, int below) {
    return head + ((x + (1u << (below - 1)) - 1 + (x >> below & 1)) >> below);
}

/* A float of any exponent, but not zero: the leading one is bit 30 of x, so that rounding has room. */
static inline uint32_t tw_packed(uint32_t sign, int32_t exponent, uint32_t x) {
    if (exponent >= 255)
        return sign | TW_INFINITE;
    if (exponent <= 0) {
        x = exponent < -30 ? 1 : tw_shifted(x, (uint32_t)(1 - exponent));
        exponent = 1;
    }
    return tw_rounded(sign | (uint32_t)(exponent - 1) << 23, x, 7);
}

#endif
