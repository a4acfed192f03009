/* What every kernel may rely on: the epilogue interface, register tiles that gcc and clang keep in vector registers,
 * and branch-free mathematics that loops can be vectorised over. Plain C11; the few compiler extensions have fallbacks.
 */
#ifndef TILEWRIGHT_KERNEL_H
#define TILEWRIGHT_KERNEL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef TW_GENERATED
/* STORE takes `rows` rows of up to 16 results, 16 elements apart in `acc` and `pitch` apart in Y, the first one at `at` and
 * of channel `channel`. STORE_4 takes four neighbours in a row, STORE_1 one. Where STORE_AGAIN is
 * not 0, the same results may be stored twice. In the stand-alone build of one kernel they store results as
 * accumulated; generated code brings its own versions with everything that is fused behind the kernel. STORE_POINTWISE tells
 * whether what is stored depends on the result alone, not on its place, STORE_STEPS how many operators are fused. Where
 * STORE_SCALES is 1, what is stored is tw_clamp(tw_scale(..)): STORE_ADDED(epilogue, channel) is added to the results of a
 * channel before, the factor is STORE_FACTOR(epilogue, channel),
 * its zero point STORE_ZERO(epilogue), and STORE_SIGNED tells int8 from uint8. Where STORE_SHIFTS is 1, it is
 * tw_clamp(tw_sum_rounded(..)) of the sum times STORE_FACTOR, of STORE_OFFSET(epilogue, channel) and of
 * STORE_SHIFT(epilogue); where STORE_LISTS is 1 too, STORE_FACTORS(epilogue) and STORE_OFFSETS(epilogue) are where those of
 * all channels lie. Of a kernel
 * with `epilogue: lanes`, STORE_HAS_LANES tells whether there is STORE_LANES(epilogue, Y, v, at, channel), which takes four
 * neighbours in a vector of the machine (tw_lanes of integers, tw_reals of floats), and STORE_BY_CHANNEL whether `channel`
 * matters. */
struct Epilogue {
    int unused;
};
#define STORE(epilogue, Y, acc, at, pitch, channel, rows, count)                                                       \
    do {                                                                                                               \
        (void)(epilogue), (void)(channel);                                                                             \
        for (int row = 0; row < (rows); row++)                                                                         \
            memcpy((char *)(Y) + (size_t)((at) + row * (pitch)) * sizeof *(acc), (acc) + row * 16,                     \
                   (size_t)(count) * sizeof *(acc));                                                                   \
    } while (0)
#define STORE_AGAIN 1
#define STORE_STEPS 0
#define STORE_1(epilogue, Y, a, at, channel)                                                                           \
    do {                                                                                                               \
        const int32_t one = a;                                                                                         \
        (void)(epilogue), (void)(channel);                                                                             \
        memcpy((char *)(Y) + (size_t)(at) * sizeof one, &one, sizeof one);                                             \
    } while (0)
#define STORE_4(epilogue, Y, a, b, c, d, at, channel)                                                                  \
    do {                                                                                                               \
        const int32_t four[4] = {a, b, c, d};                                                                          \
        (void)(epilogue), (void)(channel);                                                                             \
        memcpy((char *)(Y) + (size_t)(at) * sizeof *four, four, sizeof four);                                          \
    } while (0)
#define STORE_POINTWISE 1
#define STORE_SCALES 0
#define STORE_SHIFTS 0
#define STORE_LISTS 0
#define STORE_HAS_LANES 0
#define STORE_BY_CHANNEL 0
#endif

/* A machine brings its own versions of what it has instructions for. */
#if __has_include("tilewright_core.h")
#include "tilewright_core.h"
#endif

/* Loops of constant length over tile rows and lanes must disappear before accumulators can live in registers (TW_UNROLL);
 * functions made of them stand apart, because inlined into larger loops they often lose their vectors again (TW_APART). gcc
 * vectorises other short loops of constant length better while they are loops (TW_ROLLED). Long loops of few operations
 * wait less for their own branch when they are unrolled a little (TW_UNROLL_4). */
#if defined(__clang__)
#define TW_UNROLL _Pragma("clang loop unroll(full)")
#define TW_ROLLED
#define TW_UNROLL_4 _Pragma("clang loop unroll_count(4)")
#define TW_INLINE static inline __attribute__((always_inline, unused))
#define TW_APART static __attribute__((noinline, unused))
#elif defined(__GNUC__)
#define TW_UNROLL _Pragma("GCC unroll 32")
#ifndef TW_ROLLED
#define TW_ROLLED _Pragma("GCC unroll 1")
#endif
#define TW_UNROLL_4 _Pragma("GCC unroll 4")
#define TW_INLINE static inline __attribute__((always_inline, unused))
#define TW_APART static __attribute__((noinline, unused))
#else
#define TW_UNROLL
#define TW_ROLLED
#define TW_UNROLL_4
#define TW_INLINE static inline
#define TW_APART static inline
#endif

/* Keeps a value in a register: the compiler no longer knows how it came about and works it out again and again. */
#if defined(__GNUC__)
#define TW_KEEP(value) __asm__("" : "+r"(value))
#else
#define TW_KEEP(value) ((void)0)
#endif

/* a * b + c, fused where the machine does it in one instruction (ISO mode forbids gcc to contract the expression). */
#if defined(__GNUC__) && (defined(__FP_FAST_FMAF) || defined(__ARM_FEATURE_FMA) || defined(__FMA__))
#define TW_FUSED
#define TW_FMA(a, b, c) __builtin_fmaf((a), (b), (c))
#else
#define TW_FMA(a, b, c) ((a) * (b) + (c))
#endif

#ifndef TW_CORE_LIMITS
static inline int tw_min(int a, int b) { return a < b ? a : b; }
static inline int tw_max(int a, int b) { return a > b ? a : b; }
/* One limit after the other: compilers turn that into maximum and minimum instructions. */
TW_INLINE int32_t tw_clamp(int32_t x, int32_t lo, int32_t hi) {
    const int32_t raised = x > lo ? x : lo;
    return raised < hi ? raised : hi;
}
#endif

/* A value that is known to be between two limits; compilers convert it without instructions. */
TW_INLINE int32_t tw_within(int32_t x, int32_t lo, int32_t hi) {
#if defined(__GNUC__)
    if (x < lo || x > hi)
        __builtin_unreachable();
#endif
    return (void)lo, (void)hi, x;
}

/* (a + b) / 2^shift rounded to the nearest integer, half upwards; half is 1 << shift >> 1, and shift is not 0. */
#ifndef TW_CORE_ROUNDS
TW_INLINE int32_t tw_sum_rounded(int32_t a, int32_t b, int32_t half, int shift) { return (a + b + half) >> shift; }
/* total / 2^shift rounded to the nearest integer, half to the odd one, and (total + 1) / 2^shift, half to the even one. */
TW_INLINE int32_t tw_half_to_odd(int32_t total, int32_t half, int shift) {
    return (total + half - ((total >> shift) & 1)) >> shift;
}
TW_INLINE int32_t tw_half_to_even(int32_t total, int32_t half, int shift) {
    return (total + half + ((total >> shift) & 1)) >> shift;
}
#endif

/* Where four bytes are stored faster together, rows of bytes are stored by tw_store_4. Single ones are by tw_store_1. */
#ifndef TW_QUADS
#define TW_QUADS 0
#define tw_store_1(to, a) (*(to) = (a))
#define tw_store_4(to, a, b, c, d) ((to)[0] = (a), (to)[1] = (b), (to)[2] = (c), (to)[3] = (d))
#endif

/* x rounded half to even, plus zero, limited. In this order NaN becomes lo instead of an undefined conversion. */
#ifndef TW_CORE_QUANTISES
TW_INLINE float tw_quantised(float x, float zero, float lo, float hi) {
    const float scaled = rintf(x) + zero;
    return scaled > lo ? (scaled < hi ? scaled : hi) : lo;
}
#endif

/* The same of x / scale; `high` + `low` is the reciprocal of the scale, for machines that divide slowly. */
#ifndef TW_CORE_DIVIDES
#define tw_quantised_by(x, scale, high, low, zero, lo, hi)                                                             \
    ((void)(high), (void)(low), tw_quantised((x) / (scale), (zero), (lo), (hi)))
/* a / b, where b is the same along a loop. */
#define tw_divided(a, b) ((a) / (b))
#endif

/* value / divisor for values below 2^31, by UINT32_MAX / divisor. */
TW_INLINE uint32_t tw_quotient(uint32_t value, uint32_t divisor, uint32_t reciprocal) {
    const uint32_t quotient = (uint32_t)((uint64_t)value * reciprocal >> 32); /* right, or one too low */
    return quotient + (value - quotient * divisor >= divisor);
}
/* The same for signed values, rounding toward zero. */
TW_INLINE int32_t tw_divide(int32_t value, int32_t divisor, uint32_t reciprocal) {
    const uint32_t size = (uint32_t)(value < 0 ? -value : value);
    const int32_t quotient = (int32_t)tw_quotient(size, (uint32_t)divisor, reciprocal);
    return value < 0 ? -quotient : quotient;
}

/* Whether all values are in [-limit, limit), a power of two. */
static inline int tw_below(const int32_t *values, int count, int32_t limit) {
    int32_t bits = 0;
    TW_UNROLL_4 for (int i = 0; i < count; i++) bits |= values[i] < 0 ? ~values[i] : values[i];
    return bits < limit;
}

/* Mathematics without branches or calls, so that loops over it are vectorised. Errors are below 4e-7 relative; infinities
 * and NaN behave as in libm. The rational functions are own minimax fits on the range where the result is not yet 1. */
TW_INLINE uint32_t tw_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
TW_INLINE float tw_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

TW_INLINE float tw_expf(float x) {
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer, found in the low bits */
    float clamped = x > 89.0f ? 89.0f : x;
    clamped = clamped < -104.0f ? -104.0f : clamped;
    const float shifted = TW_FMA(clamped, 1.44269504f, magic);
    const float n = shifted - magic;
    const float r = TW_FMA(n, -1.42860677e-6f, TW_FMA(n, -0.693145752f, clamped)), r2 = r * r;
    /* Pairs of terms are computed side by side: loops over this wait for results more than for instructions. */
    float p = TW_FMA(r2, 1.39824e-3f, TW_FMA(r, 8.3337e-3f, 4.16665e-2f));
    p = TW_FMA(r2, p, TW_FMA(r, 0.166666657f, 0.5f));
    p = TW_FMA(r2, p, r + 1.0f);
    /* 2^n in two factors: the product overflows to infinity and underflows gradually all by itself. */
    const uint32_t power = tw_bits(shifted) - 0x4B400000u + 254u;
    return p * tw_float((power / 2u) << 23) * tw_float((power - power / 2u) << 23);
}

TW_INLINE float tw_sigmoidf(float x) { return 1.0f / (1.0f + tw_expf(-x)); }

/* Odd functions that approach 1: the magnitude is clamped as an integer (a float comparison would make gcc branch). */
TW_INLINE float tw_magnitude(float x, uint32_t limit) {
    const uint32_t a = tw_bits(x) & 0x7FFFFFFFu;
    return tw_float(a < limit ? a : limit);
}
TW_INLINE float tw_saturate(float y, float x) {
    const uint32_t bits = tw_bits(x), one = 0x3F800000u;
    const uint32_t value = tw_bits(y) < one ? tw_bits(y) : one;
    const uint32_t nan = (bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC00000u : 0u;
    return tw_float(value | nan | (bits & 0x80000000u));
}

TW_INLINE float tw_tanhf(float x) {
    const float a = tw_magnitude(x, 0x411051ECu) /* 9.02 */, u = a * a;
    float p = TW_FMA(1.3317870e-8f, u, 2.0582905e-5f);
    p = TW_FMA(p, u, 3.4940119e-3f);
    p = TW_FMA(p, u, 0.13379703f);
    p = TW_FMA(p, u, 0.99999998f);
    float q = TW_FMA(7.7616136e-7f, u, 3.2830472e-4f);
    q = TW_FMA(q, u, 2.5870999e-2f);
    q = TW_FMA(q, u, 0.46713018f);
    q = TW_FMA(q, u, 1.0f);
    return tw_saturate(a * p / q, x);
}

TW_INLINE float tw_erff(float x) {
    const float a = tw_magnitude(x, 0x407CCCCDu) /* 3.95 */, u = a * a;
    const float u2 = u * u;
    float p = TW_FMA(2.0255029e-6f, u, 2.8458776e-4f);
    p = TW_FMA(p, u2, TW_FMA(3.8061031e-3f, u, 5.2868828e-2f));
    p = TW_FMA(p, u2, TW_FMA(0.19150980f, u, 1.12837914f));
    float q = TW_FMA(3.7822402e-5f, u, 1.1701284e-3f);
    q = TW_FMA(q, u2, TW_FMA(1.5050977e-2f, u, 0.11454175f));
    q = TW_FMA(q, u2, TW_FMA(0.50305382f, u, 1.0f));
    return tw_saturate(a * p / q, x);
}

TW_INLINE float tw_logf(float x) {
    const uint32_t subnormal = tw_bits(x) < 0x00800000u ? 1u : 0u; /* or zero; negative numbers have the top bit set */
    const float scaled = x * tw_float(0x3F800000u + subnormal * (23u << 23));
    const uint32_t offset = tw_bits(scaled) - 0x3F3504F3u; /* binades begin at sqrt(1/2) */
    const int32_t exponent = (int32_t)((offset >> 23) ^ 0x100u) - 0x100 - (int32_t)(23u * subnormal);
    const float e = (float)exponent, f = tw_float((offset & 0x7FFFFFu) + 0x3F3504F3u) - 1.0f;
    const float z = f / (2.0f + f), s = z * z; /* log(1 + f) = 2 atanh(z) */
    float p = TW_FMA(s, 0.22519701f, 0.28492790f);
    p = TW_FMA(p, s, 0.40001198f);
    p = TW_FMA(p, s, 0.66666665f);
    const float y = TW_FMA(e, 0.693145752f, TW_FMA(e, 1.42860677e-6f, TW_FMA(z * s, p, 2.0f * z)));
    const uint32_t bits = tw_bits(x), magnitude = bits & 0x7FFFFFFFu;
    uint32_t result = tw_bits(y);
    result = bits >= 0x7F800000u ? 0x7FC00000u : result; /* negative or NaN */
    result = bits == 0x7F800000u ? bits : result;
    return tw_float(magnitude == 0u ? 0xFF800000u : result);
}

/* zero + x * mul / 2^shift rounded to the nearest integer, half to even, for |x| and |mul| up to 2^24 and results below
 * 2^22.
 * A fused multiply-add rounds once, at the weight of the last bit of `magic`, which is 1; in double the product is exact.
 * Machines without such hardware compute the same in integers. */
TW_INLINE float tw_factor(int32_t mul, int shift) { return (float)mul * tw_float((uint32_t)(127 - shift) << 23); }
TW_INLINE int32_t tw_scale(int32_t x, int32_t mul, int shift, int32_t zero) {
#if defined(TW_FUSED)
    const float magic = 12582912.0f /* 1.5 * 2^23 */;
    return (int32_t)(tw_bits(TW_FMA((float)x, tw_factor(mul, shift), magic)) + ((uint32_t)zero - 0x4B400000u));
#elif defined(__SSE2__)
    const uint64_t exponent = (uint64_t)(1023 - shift) << 52;
    double power, sum;
    uint64_t bits;
    memcpy(&power, &exponent, sizeof power);
    sum = (double)x * ((double)mul * power) + 6755399441055744.0 /* 1.5 * 2^52 */;
    memcpy(&bits, &sum, sizeof bits);
    return (int32_t)((uint32_t)bits + (uint32_t)zero);
#else
    const int64_t total = (int64_t)x * mul;
    return zero + (int32_t)((total + (INT64_C(1) << shift >> 1) - 1 + (total >> shift & 1)) >> shift);
#endif
}
/* The same where no x * mul / 2^shift lies halfway between two integers, for |mul| below 2^24, |zero| up to 2^8 and
 * shifts from 26 to 46. */
#ifndef TW_CORE_SCALES
TW_INLINE int32_t tw_scale_untied(int32_t x, int32_t mul, int shift, int32_t zero) {
    return tw_scale(x, mul, shift, zero);
}
#endif

/* The same names without the f take double, where the precision is wanted and libm has it. */
TW_INLINE double tw_exp(double x) { return exp(x); }
TW_INLINE double tw_log(double x) { return log(x); }
TW_INLINE double tw_tanh(double x) { return tanh(x); }
TW_INLINE double tw_erf(double x) { return erf(x); }
TW_INLINE double tw_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

/* Sums in 16 interleaved parts: fast, and more exact than one running sum. */
TW_INLINE float tw_sum_parts(float *part) {
    TW_UNROLL for (int j = 0; j < 8; j++) part[j] += part[j + 8];
    TW_UNROLL for (int j = 0; j < 4; j++) part[j] += part[j + 4];
    return (part[0] + part[2]) + (part[1] + part[3]);
}
static inline float tw_sum_f32(const float *x, int n) {
    float part[16], rest = 0.0f;
    const int whole = n - n % 16;
    TW_UNROLL for (int j = 0; j < 16; j++) part[j] = 0.0f;
    for (int i = 0; i < whole; i += 16) {
        TW_UNROLL for (int j = 0; j < 16; j++) part[j] += x[i + j];
    }
    for (int i = whole; i < n; i++)
        rest += x[i];
    return tw_sum_parts(part) + rest;
}
/* Sum of (x - mean)^2. */
static inline float tw_sum_squares_f32(const float *x, float mean, int n) {
    float part[16], rest = 0.0f;
    const int whole = n - n % 16;
    TW_UNROLL for (int j = 0; j < 16; j++) part[j] = 0.0f;
    for (int i = 0; i < whole; i += 16) {
        TW_UNROLL for (int j = 0; j < 16; j++) part[j] = TW_FMA(x[i + j] - mean, x[i + j] - mean, part[j]);
    }
    for (int i = whole; i < n; i++)
        rest = TW_FMA(x[i] - mean, x[i] - mean, rest);
    return tw_sum_parts(part) + rest;
}
/* Compared as integers, which compilers vectorise: negative numbers have their other bits turned over. */
static inline float tw_max_f32(const float *x, int n) {
    int32_t max = INT32_MIN;
    for (int i = 0; i < n; i++) {
        const int32_t bits = (int32_t)tw_bits(x[i]), key = bits ^ (bits >> 31 & INT32_MAX);
        max = max > key ? max : key;
    }
    return tw_float((uint32_t)(max ^ (max >> 31 & INT32_MAX)));
}

/* The largest integer whose square is not above n. */
static inline int32_t tw_isqrt(int32_t n) {
    uint32_t rest = (uint32_t)n, root = 0u;
    for (uint32_t bit = 1u << 30; bit; bit >>= 2) {
        if (rest >= root + bit) {
            rest -= root + bit;
            root = (root >> 1) + bit;
        } else {
            root >>= 1;
        }
    }
    return (int32_t)root;
}

#include "tilewright_tile.h"

#endif
