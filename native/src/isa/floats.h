// Arithmetic of binary floating-point formats of up to 64 bits as RISC-V defines it, on raw bit patterns: canonical NaNs,
// subnormals, underflow after rounding, exceptions that only accrue. Operands may be of a narrower format than the result.
#pragma once

#include "isa/float32.h"

#include <bit>
#include <cstdint>

namespace tilewright {

struct FloatFormat {
    int exponent_bits;
    int fraction_bits;

    constexpr int width() const { return 1 + exponent_bits + fraction_bits; }
    constexpr uint64_t sign() const { return uint64_t{1} << (width() - 1); }
    constexpr uint64_t magnitude() const { return sign() - 1; }
    constexpr uint64_t infinity() const { return magnitude() & ~((uint64_t{1} << fraction_bits) - 1); }
    constexpr uint64_t quiet() const { return uint64_t{1} << (fraction_bits - 1); }
    constexpr uint64_t canonical_nan() const { return infinity() | quiet(); }
    constexpr uint64_t mask() const { return sign() | magnitude(); }
    constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
    constexpr bool is_nan(uint64_t a) const { return (a & magnitude()) > infinity(); }
    constexpr bool is_signalling(uint64_t a) const { return is_nan(a) && (a & quiet()) == 0; }
    constexpr bool is_infinite(uint64_t a) const { return (a & magnitude()) == infinity(); }
    constexpr bool is_zero(uint64_t a) const { return (a & magnitude()) == 0; }
    constexpr bool operator==(const FloatFormat &) const = default;
};

namespace float_format {
inline constexpr FloatFormat e5m2{5, 2}, e4m3{4, 3}, half{5, 10}, bfloat{8, 7}, single_{8, 23}, double_{11, 52};
} // namespace float_format

// Products and the first operand of a sum are of format `from`, addends and results of format `to`.
namespace floats {
uint64_t add(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, FloatState &state);
uint64_t multiply(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, FloatState &state);
uint64_t multiply_add(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, uint64_t c, FloatState &state);
// a * b + c * d + e with one rounding.
uint64_t dot(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
             FloatState &state);
uint64_t divide(FloatFormat format, uint64_t a, uint64_t b, FloatState &state);
uint64_t square_root(FloatFormat format, uint64_t a, FloatState &state);
uint64_t convert(FloatFormat from, FloatFormat to, uint64_t a, FloatState &state);
uint64_t minimum(FloatFormat format, uint64_t a, uint64_t b, FloatState &state);
uint64_t maximum(FloatFormat format, uint64_t a, uint64_t b, FloatState &state);
// Comparisons give 0 or 1. Any NaN is invalid in `lt` and `le`, only a signalling one in `eq`.
uint64_t eq(FloatFormat format, uint64_t a, uint64_t b, FloatState &state);
uint64_t lt(FloatFormat format, uint64_t a, uint64_t b, FloatState &state);
uint64_t le(FloatFormat format, uint64_t a, uint64_t b, FloatState &state);
uint32_t classify(FloatFormat format, uint64_t a);
// Integers of some bits; what is out of range becomes the nearest, a NaN the largest.
uint64_t to_integer(FloatFormat format, uint64_t a, int bits, bool is_signed, FloatState &state);
uint64_t from_integer(FloatFormat format, int64_t value, FloatState &state);
} // namespace floats

} // namespace tilewright
