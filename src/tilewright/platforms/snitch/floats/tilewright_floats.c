/* What compilers call for sums, products and comparisons of floats where cores have none. They are those of IEEE 754, to the
 * nearest and ties to even, as the compiler's own, and short: eight cores fetch their code from one cache. What happens
 * often is straight code; zeros, numbers without a leading one, infinities and NaN are done apart. */
#include <stdint.h>

typedef uint32_t tw_bits;
#define TW_SIGN 0x80000000u
#define TW_INFINITE 0x7F800000u
#define TW_NAN 0x7FC00000u
#define TW_RARELY(x) __builtin_expect(!!(x), 0)
#define TW_RARE __attribute__((noinline, cold))

tw_bits __addsf3(tw_bits a, tw_bits b);
tw_bits __subsf3(tw_bits a, tw_bits b);
tw_bits __mulsf3(tw_bits a, tw_bits b);
int32_t __lesf2(tw_bits a, tw_bits b);
int32_t __ltsf2(tw_bits a, tw_bits b);
int32_t __gesf2(tw_bits a, tw_bits b);
int32_t __gtsf2(tw_bits a, tw_bits b);
int32_t __eqsf2(tw_bits a, tw_bits b);
int32_t __nesf2(tw_bits a, tw_bits b);
int32_t __unordsf2(tw_bits a, tw_bits b);

static inline tw_bits exponent_of(tw_bits a) { return a << 1 >> 24; }
static inline int is_nan(tw_bits a) { return a << 1 > TW_INFINITE << 1; }

/* Shifts to the right; the last bit tells that something was lost. */
static inline tw_bits shifted(tw_bits x, tw_bits by) {
    const tw_bits left = x >> by;
    return left | (left << by != x);
}

/* Adds a significand of 24 bits and `below` more to the bits of a float, rounded to the nearest. */
static inline tw_bits rounded(tw_bits head, tw_bits x, int below) {
    return head + ((x + (1u << (below - 1)) - 1 + (x >> below & 1)) >> below);
}

/* Any number but zero: its leading one is bit 30 of x, so that rounding has room. */
static tw_bits packed(tw_bits sign, int32_t exponent, tw_bits x) {
    if (exponent >= 255)
        return sign | TW_INFINITE;
    if (exponent <= 0) {
        x = exponent < -30 ? 1 : shifted(x, (tw_bits)(1 - exponent));
        exponent = 1;
    }
    return rounded(sign | (tw_bits)(exponent - 1) << 23, x, 7);
}

/* The significand of a number that is not zero, and its exponent. */
static tw_bits unpacked(tw_bits a, int32_t *exponent) {
    tw_bits x = a << 8;
    *exponent = (int32_t)exponent_of(a);
    if (*exponent)
        return x | TW_SIGN;
    for (*exponent = 1; !(x & TW_SIGN); x <<= 1)
        --*exponent;
    return x;
}

static TW_RARE tw_bits multiplied(tw_bits a, tw_bits b) {
    const tw_bits sign = (a ^ b) & TW_SIGN;
    if (is_nan(a) || is_nan(b))
        return TW_NAN;
    if (exponent_of(a) == 255 || exponent_of(b) == 255)
        return a << 1 && b << 1 ? sign | TW_INFINITE : TW_NAN;
    if (!(a << 1 && b << 1))
        return sign;
    int32_t p, q;
    const uint64_t product = (uint64_t)unpacked(a, &p) * unpacked(b, &q);
    const tw_bits x = (tw_bits)(product >> 32) | ((tw_bits)product != 0);
    return x & TW_SIGN ? packed(sign, p + q - 126, shifted(x, 1)) : packed(sign, p + q - 127, x);
}

tw_bits __mulsf3(tw_bits a, tw_bits b) {
    const tw_bits p = exponent_of(a), q = exponent_of(b);
    if (TW_RARELY(p - 1 >= 254 || q - 1 >= 254))
        return multiplied(a, b);
    const uint64_t product = (uint64_t)(a << 8 | TW_SIGN) * (b << 8 | TW_SIGN);
    const tw_bits x = (tw_bits)(product >> 32) | ((tw_bits)product != 0), exponent = p + q - 128;
    if (TW_RARELY(exponent >= 253))
        return multiplied(a, b);
    const tw_bits head = ((a ^ b) & TW_SIGN) + (exponent << 23);
    return x & TW_SIGN ? rounded(head + (1u << 23), x, 8) : rounded(head, x, 7);
}

/* Of a and b, which is not larger. */
static TW_RARE tw_bits added(tw_bits a, tw_bits b) {
    if (exponent_of(a) == 255)
        return is_nan(a) || (exponent_of(b) == 255 && a != b) ? TW_NAN : a;
    if (!(b << 1))
        return a << 1 ? a : a & b;
    int32_t p, q;
    tw_bits x = unpacked(a, &p) >> 2, y = unpacked(b, &q) >> 2;
    y = p - q > 31 ? 1 : shifted(y, (tw_bits)(p - q));
    x = (a ^ b) & TW_SIGN ? x - y : x + y;
    if (!x)
        return 0;
    for (p++; !(x >> 30); x <<= 1)
        p--;
    return packed(a & TW_SIGN, p, x);
}

tw_bits __addsf3(tw_bits a, tw_bits b) {
    if (a << 1 < b << 1) {
        const tw_bits larger = b;
        b = a;
        a = larger;
    }
    tw_bits p = exponent_of(a);
    const tw_bits q = exponent_of(b), distance = p - q;
    if (TW_RARELY(p >= 254 || !q))
        return added(a, b);
    if (TW_RARELY(distance > 26))
        return a;
    /* The leading one in bit 29. */
    tw_bits x = (a << 8 | TW_SIGN) >> 2;
    const tw_bits y = shifted((b << 8 | TW_SIGN) >> 2, distance), head = a >> 23 << 23;
    if (!((a ^ b) & TW_SIGN)) {
        x += y;
        return x >> 30 ? rounded(head, x, 7) : rounded(head - (1u << 23), x, 6);
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
    return rounded((a & TW_SIGN) + ((p - 1) << 23), x, 6);
}

tw_bits __subsf3(tw_bits a, tw_bits b) { return __addsf3(a, b ^ TW_SIGN); }

/* As integers, floats are in order; negative ones the other way round. */
static inline int32_t compared(tw_bits a, tw_bits b, int32_t unordered) {
    if (TW_RARELY(is_nan(a) || is_nan(b)))
        return unordered;
    const int32_t x = (int32_t)(a & TW_SIGN ? TW_SIGN - a : a), y = (int32_t)(b & TW_SIGN ? TW_SIGN - b : b);
    return (x > y) - (x < y);
}
int32_t __lesf2(tw_bits a, tw_bits b) { return compared(a, b, 1); }
int32_t __ltsf2(tw_bits a, tw_bits b) { return compared(a, b, 1); }
int32_t __gesf2(tw_bits a, tw_bits b) { return compared(a, b, -1); }
int32_t __gtsf2(tw_bits a, tw_bits b) { return compared(a, b, -1); }
int32_t __eqsf2(tw_bits a, tw_bits b) { return compared(a, b, 1); }
int32_t __nesf2(tw_bits a, tw_bits b) { return compared(a, b, 1); }
int32_t __unordsf2(tw_bits a, tw_bits b) { return is_nan(a) || is_nan(b); }
