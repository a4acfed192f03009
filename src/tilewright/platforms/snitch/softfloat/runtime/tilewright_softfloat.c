/* What compilers call for sums, products and comparisons of floats where cores have none. They are those of IEEE 754, to the
 * nearest and ties to even, as the compiler's own, and short: eight cores fetch their code from one cache. What happens
 * often is straight code; zeros, numbers without a leading one, infinities and NaN are done apart. */
#include "tilewright_softfloat.h"

#define TW_RARE __attribute__((noinline, cold))

uint32_t __addsf3(uint32_t a, uint32_t b);
uint32_t __subsf3(uint32_t a, uint32_t b);
uint32_t __mulsf3(uint32_t a, uint32_t b);
int32_t __lesf2(uint32_t a, uint32_t b);
int32_t __ltsf2(uint32_t a, uint32_t b);
int32_t __gesf2(uint32_t a, uint32_t b);
int32_t __gtsf2(uint32_t a, uint32_t b);
int32_t __eqsf2(uint32_t a, uint32_t b);
int32_t __nesf2(uint32_t a, uint32_t b);
int32_t __unordsf2(uint32_t a, uint32_t b);

/* The significand of a number that is not zero, and its exponent. */
static uint32_t unpacked(uint32_t a, int32_t *exponent) {
    uint32_t x = a << 8;
    *exponent = (int32_t)tw_exponent(a);
    if (*exponent)
        return x | TW_SIGN;
    for (*exponent = 1; !(x & TW_SIGN); x <<= 1)
        --*exponent;
    return x;
}

static TW_RARE uint32_t multiplied(uint32_t a, uint32_t b) {
    const uint32_t sign = (a ^ b) & TW_SIGN;
    if (tw_is_nan(a) || tw_is_nan(b))
        return TW_NAN;
    if (tw_exponent(a) == 255 || tw_exponent(b) == 255)
        return a << 1 && b << 1 ? sign | TW_INFINITE : TW_NAN;
    if (!(a << 1 && b << 1))
        return sign;
    int32_t p, q;
    const uint64_t product = (uint64_t)unpacked(a, &p) * unpacked(b, &q);
    const uint32_t x = (uint32_t)(product >> 32) | ((uint32_t)product != 0);
    return x & TW_SIGN ? tw_packed(sign, p + q - 126, tw_shifted(x, 1)) : tw_packed(sign, p + q - 127, x);
}

uint32_t __mulsf3(uint32_t a, uint32_t b) {
    const uint32_t p = tw_exponent(a), q = tw_exponent(b);
    if (TW_RARELY(tw_is_special(p) || tw_is_special(q)))
        return multiplied(a, b);
    const uint64_t product = (uint64_t)(a << 8 | TW_SIGN) * (b << 8 | TW_SIGN);
    const uint32_t x = (uint32_t)(product >> 32) | ((uint32_t)product != 0), exponent = p + q - 128;
    if (TW_RARELY(exponent >= 253))
        return multiplied(a, b);
    const uint32_t head = ((a ^ b) & TW_SIGN) + (exponent << 23);
    return x & TW_SIGN ? tw_rounded(head + (1u << 23), x, 8) : tw_rounded(head, x, 7);
}

/* Of a and b, which is not larger. */
static TW_RARE uint32_t added(uint32_t a, uint32_t b) {
    if (tw_exponent(a) == 255)
        return tw_is_nan(a) || (tw_exponent(b) == 255 && a != b) ? TW_NAN : a;
    if (!(b << 1))
        return a << 1 ? a : a & b;
    int32_t p, q;
    uint32_t x = unpacked(a, &p) >> 2, y = unpacked(b, &q) >> 2;
    y = p - q > 31 ? 1 : tw_shifted(y, (uint32_t)(p - q));
    x = (a ^ b) & TW_SIGN ? x - y : x + y;
    if (!x)
        return 0;
    for (p++; !(x >> 30); x <<= 1)
        p--;
    return tw_packed(a & TW_SIGN, p, x);
}

uint32_t __addsf3(uint32_t a, uint32_t b) {
    if (a << 1 < b << 1) {
        const uint32_t larger = b;
        b = a;
        a = larger;
    }
    uint32_t p = tw_exponent(a);
    const uint32_t q = tw_exponent(b), distance = p - q;
    if (TW_RARELY(p >= 254 || !q))
        return added(a, b);
    if (TW_RARELY(distance > 26))
        return a;
    /* The leading one in bit 29. */
    uint32_t x = (a << 8 | TW_SIGN) >> 2;
    const uint32_t y = tw_shifted((b << 8 | TW_SIGN) >> 2, distance), head = a >> 23 << 23;
    if (!((a ^ b) & TW_SIGN)) {
        x += y;
        return x >> 30 ? tw_rounded(head, x, 7) : tw_rounded(head - (1u << 23), x, 6);
    }
    x -= y;
    if (!(x >> 29)) {
        if (!x)
            return 0;
        do {
            x <<= 1;
            p--;
        } while (!(x >> 29));
        if (TW_RARELY((int32_t)p <= 0))
            return added(a, b);
    }
    return tw_rounded((a & TW_SIGN) + ((p - 1) << 23), x, 6);
}

uint32_t __subsf3(uint32_t a, uint32_t b) { return __addsf3(a, b ^ TW_SIGN); }

/* As integers, floats are in order; negative ones the other way round. */
static inline int32_t compared(uint32_t a, uint32_t b, int32_t unordered) {
    if (TW_RARELY(tw_is_nan(a) || tw_is_nan(b)))
        return unordered;
    const int32_t x = (int32_t)(a & TW_SIGN ? TW_SIGN - a : a), y = (int32_t)(b & TW_SIGN ? TW_SIGN - b : b);
    return (x > y) - (x < y);
}
int32_t __lesf2(uint32_t a, uint32_t b) { return compared(a, b, 1); }
int32_t __ltsf2(uint32_t a, uint32_t b) { return compared(a, b, 1); }
int32_t __gesf2(uint32_t a, uint32_t b) { return compared(a, b, -1); }
int32_t __gtsf2(uint32_t a, uint32_t b) { return compared(a, b, -1); }
int32_t __eqsf2(uint32_t a, uint32_t b) { return compared(a, b, 1); }
int32_t __nesf2(uint32_t a, uint32_t b) { return compared(a, b, 1); }
int32_t __unordsf2(uint32_t a, uint32_t b) { return tw_is_nan(a) || tw_is_nan(b); }
