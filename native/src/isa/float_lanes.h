// Lanes of registers by the host's FPU, all at once: two singles, four halves, or products of halves in two singles. What
// is not certain here (results that are no usual numbers, sums that no double holds) is left to floats.h, lane by lane.
//
// Subnormal operands are the host's as well, so its FPU has to be in its usual state: see UsualFloats.
#pragma once

#include "isa/floats.h"

#include <bit>
#include <cfenv>
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tilewright {

// The host's FPU rounds to nearest-even and keeps subnormals while this exists, whatever else is in the process.
class UsualFloats {
  public:
    UsualFloats() {
        std::fegetenv(&before_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~UsualFloats() { std::fesetenv(&before_); }
    UsualFloats(const UsualFloats &) = delete;
    UsualFloats &operator=(const UsualFloats &) = delete;

  private:
    std::fenv_t before_;
};

#if defined(__x86_64__)
// For processors of the last ten years: vectors, shifts by registers, multiply-add and halves without a call.
#define WIDE __attribute__((target("avx2,fma,f16c,bmi,bmi2")))
#endif

namespace float_lanes {

// Vectors of gcc and clang, which compile them for any processor.
using Halves = uint16_t __attribute__((vector_size(8)));
using Words = uint32_t __attribute__((vector_size(16)));
using Floats = float __attribute__((vector_size(16)));
using TwoWords = uint32_t __attribute__((vector_size(8)));
using TwoFloats = float __attribute__((vector_size(8)));
using Doubles = double __attribute__((vector_size(16)));
using Longs = int64_t __attribute__((vector_size(16)));
using Pair = uint64_t __attribute__((vector_size(16)));

// Which operands make a sum, and with which signs: product (or the first operand) and addend.
struct Terms {
    bool product, sum, negative_product, negative_addend;
};

template <class Vector> Vector sum_error(Vector a, Vector b, Vector sum) {
    const Vector b_in_sum = sum - a;
    return (a - (sum - b_in_sum)) + (b - b_in_sum);
}

// Which sums are not exact: the larger operand is what is left without the smaller one, and of an exact sum also the
// smaller one without the larger.
inline Longs is_rounded(Doubles a, Doubles b, Doubles sum) { return (sum - a != b) | (sum - b != a); }

// Whether a bit is set in any lane.
template <class Vector> bool any(Vector lanes) {
    const auto both = std::bit_cast<Longs>(lanes);
    return (both[0] | both[1]) != 0;
}

// Whether both singles are usual numbers above the smallest; false for a few that are as well.
inline bool are_plain(uint64_t singles) {
    constexpr uint64_t exponents = 0x7f8000007f800000, ones = 0x0080000000800000, signs = 0x8000000080000000;
    const uint64_t found = singles & exponents; // of each 2 to 254: neither more carries nor less borrows
    return ((found + ones) & signs) == 0 && (((found | signs) - 2 * ones) & signs) == signs;
}

// Whether both singles are usual numbers, or zero where the exact results are.
inline bool are_plain(TwoFloats found, Doubles exact) {
    const uint64_t bits = std::bit_cast<uint64_t>(found);
    if (are_plain(bits)) [[likely]]
        return true;
    const auto low = static_cast<uint32_t>(bits), high = static_cast<uint32_t>(bits >> 32);
    return (float32_host::is_plain(low) || exact[0] == 0) && (float32_host::is_plain(high) || exact[1] == 0);
}

// The first two singles as doubles.
inline Doubles widened(Floats singles) {
#if defined(__x86_64__)
    return _mm_cvtps_pd(singles); // gcc would convert one after the other
#else
    return Doubles{singles[0], singles[1]};
#endif
}
inline Doubles widened(uint64_t singles) { return widened(std::bit_cast<Floats>(Pair{singles, 0})); }

// Two singles: rounded once more than the sums, which matters only half-way between two singles.
inline bool singles(Terms terms, uint64_t a, uint64_t b, uint64_t c, uint64_t &result, FloatState &state) {
    constexpr uint64_t signs = 0x8000000080000000;
    const Doubles first = widened(terms.negative_product ? a ^ signs : a);
    const Doubles product = terms.product ? first * widened(b) : first;
    const Doubles addend = widened((terms.product ? c : b) ^ (terms.negative_addend ? signs : 0));
    const Doubles sum = terms.sum ? product + addend : product;
    if (terms.sum) {
        constexpr int64_t below_float = (int64_t{1} << 29) - 1, half_way = int64_t{1} << 28;
        if (any((std::bit_cast<Longs>(sum) & below_float) == half_way)) [[unlikely]]
            return false;
    }
    const TwoFloats found = __builtin_convertvector(sum, TwoFloats);
    if (!are_plain(found, sum)) [[unlikely]]
        return false;
    if (!float32_host::knows_inexact(state)) {
        const bool sum_inexact = terms.sum && any(sum_error(product, addend, sum) != 0);
        float32_host::note_inexact(sum_inexact || any(widened(std::bit_cast<uint64_t>(found)) != sum), state);
    }
    result = std::bit_cast<uint64_t>(found);
    return true;
}

// a * b + c of two singles where a result was inexact before.
inline bool multiply_add_singles(uint64_t a, uint64_t b, uint64_t c, uint64_t &result) {
    const auto x = std::bit_cast<TwoFloats>(a), y = std::bit_cast<TwoFloats>(b), z = std::bit_cast<TwoFloats>(c);
    result = std::bit_cast<uint64_t>(TwoFloats{std::fma(x[0], y[0], z[0]), std::fma(x[1], y[1], z[1])});
    return are_plain(result);
}

// Whether a half among four is infinite or no number: a carry out of its exponent.
inline bool has_special(uint64_t halves) {
    constexpr uint64_t exponents = 0x7c007c007c007c00, ones = 0x0400040004000400, carries = 0x8000800080008000;
    return (((halves & exponents) + ones) & carries) != 0;
}

// Halves in the low bits of words as singles.
inline Floats from_halves(Words halves) {
    constexpr float scale = 0x1p112f; // between the biases of exponents
    const Floats magnitudes = std::bit_cast<Floats>((halves & 0x7fffu) << 13) * scale;
    return std::bit_cast<Floats>(std::bit_cast<Words>(magnitudes) | (halves & 0x8000u) << 16);
}
inline Floats from_halves(uint64_t halves) {
    return from_halves(__builtin_convertvector(std::bit_cast<Halves>(halves), Words));
}

// Four halves, where singles hold the sums.
inline bool halves(Terms terms, uint64_t a, uint64_t b, uint64_t c, uint64_t &result, FloatState &state) {
    constexpr uint64_t signs = 0x8000800080008000;
    if (has_special(a) || has_special(b) || (terms.product && terms.sum && has_special(c))) [[unlikely]]
        return false;
    const Floats first = from_halves(terms.negative_product ? a ^ signs : a);
    const Floats product = terms.product ? first * from_halves(b) : first;
    const Floats addend = from_halves((terms.product ? c : b) ^ (terms.negative_addend ? signs : 0));
    const Floats sum = terms.sum ? product + addend : product;
    if (terms.sum && any(sum_error(product, addend, sum) != 0)) [[unlikely]]
        return false;
    constexpr uint32_t smallest = 0x0400, infinity = 0x7c00, between = 112u << 10;
    const Words bits = std::bit_cast<Words>(sum), magnitude = bits & 0x7fffffffu;
    const Words rounded = ((magnitude + 0xfffu + (magnitude >> 13 & 1u)) >> 13) - between;
    const Words is_zero = std::bit_cast<Words>(magnitude == 0u);
    const Words is_plain = std::bit_cast<Words>(rounded - (smallest + 1) < infinity - (smallest + 1));
    if (any(~(is_plain | is_zero))) [[unlikely]]
        return false;
    if (!float32_host::knows_inexact(state))
        float32_host::note_inexact(any(magnitude & 0x1fffu), state);
    const Words found = (rounded & ~is_zero) | ((bits >> 16) & 0x8000u);
    result = std::bit_cast<uint64_t>(__builtin_convertvector(found, Halves));
    return true;
}

// Two singles, to each of which two products of halves are added, with one rounding: doubles mostly hold the sums.
// Products of even lanes come first.
inline bool dot_products(Floats products, uint64_t c, uint64_t &result, FloatState &state) {
    const Doubles first = widened(products), addend = widened(c);
    const Doubles second = widened(Floats{products[2], products[3], products[2], products[3]});
    const Doubles both = first + second, sum = both + addend;
    if (any(is_rounded(first, second, both) | is_rounded(both, addend, sum))) [[unlikely]]
        return false;
    const TwoFloats found = __builtin_convertvector(sum, TwoFloats);
    if (!are_plain(found, sum)) [[unlikely]]
        return false;
    if (!float32_host::knows_inexact(state))
        float32_host::note_inexact(any(widened(std::bit_cast<uint64_t>(found)) != sum), state);
    result = std::bit_cast<uint64_t>(found);
    return true;
}

inline bool dot_products(uint64_t a, uint64_t b, uint64_t c, uint64_t &result, FloatState &state) {
    if (has_special(a) || has_special(b)) [[unlikely]]
        return false;
    constexpr uint64_t even = 0x0000ffff0000ffff;
    const Floats x = from_halves(std::bit_cast<Words>(Pair{a & even, a >> 16 & even}));
    const Floats y = from_halves(std::bit_cast<Words>(Pair{b & even, b >> 16 & even}));
    return dot_products(x * y, c, result, state); // products are exact
}

#ifdef WIDE
namespace wide {

WIDE inline bool multiply_add_singles(uint64_t a, uint64_t b, uint64_t c, uint64_t &result) {
    const auto both = [](uint64_t singles) { return std::bit_cast<Floats>(Pair{singles, 0}); };
    result = std::bit_cast<Pair>(static_cast<Floats>(_mm_fmadd_ps(both(a), both(b), both(c))))[0];
    return are_plain(result);
}

WIDE inline bool dot_products(uint64_t a, uint64_t b, uint64_t c, uint64_t &result, FloatState &state) {
    if (has_special(a) || has_special(b)) [[unlikely]]
        return false;
    const Floats x = _mm_cvtph_ps(std::bit_cast<__m128i>(Pair{a, 0}));
    const Floats y = _mm_cvtph_ps(std::bit_cast<__m128i>(Pair{b, 0}));
    const Floats products = x * y;
    return float_lanes::dot_products(_mm_shuffle_ps(products, products, _MM_SHUFFLE(3, 1, 2, 0)), c, result, state);
}

} // namespace wide
#else
namespace wide = float_lanes;
#endif

} // namespace float_lanes

} // namespace tilewright
