// Arithmetic of binary floating-point formats of up to 64 bits as RISC-V defines it, on raw bit patterns: canonical NaNs,
// subnormals, underflow after rounding, exceptions that only accrue. Operands may be of a narrower format than the result.
#pragma once

#include "isa/float32.h"

#include <bit>
#include <cmath>
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

// The slow way, right for all formats, operands and rounding modes.
namespace floats_exact {
uint64_t add(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, FloatState &state);
uint64_t multiply(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, FloatState &state);
uint64_t multiply_add(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, uint64_t c, FloatState &state);
uint64_t dot(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
             FloatState &state);
} // namespace floats_exact

// The host's doubles, where they give the same: see float32.h.
namespace float64_host {

inline constexpr FloatFormat format = float_format::double_;
inline constexpr uint64_t smallest_normal = uint64_t{1} << 52;
// The error of a product is a double only well above the smallest.
inline constexpr double smallest_product = 1e-250;

inline double number(uint64_t bits) { return std::bit_cast<double>(bits); }
inline uint64_t bits(double number) { return std::bit_cast<uint64_t>(number); }
inline bool takes(uint64_t a) { return (a & format.magnitude()) - 1 >= smallest_normal - 1; }
inline bool takes(FloatFormat from, FloatFormat to, const FloatState &state) {
    return from == format && to == format && float32_host::takes(state);
}
inline bool is_plain(uint64_t a) {
    return (a & format.magnitude()) - (smallest_normal + 1) < format.infinity() - (smallest_normal + 1);
}
// Whether a number of a narrower format is zero or normal, and what it is then.
inline bool takes(FloatFormat narrow, uint64_t a) {
    const uint64_t magnitude = a & narrow.magnitude();
    return magnitude - 1 >= (uint64_t{1} << narrow.fraction_bits) - 1 && magnitude < narrow.infinity();
}
inline double widened(FloatFormat narrow, uint64_t a) {
    const uint64_t magnitude = (a & narrow.magnitude()) << (format.fraction_bits - narrow.fraction_bits);
    const auto scale = static_cast<uint64_t>(2 * format.bias() - narrow.bias()) << format.fraction_bits;
    return number(magnitude | (a & narrow.sign()) << (format.width() - narrow.width())) * number(scale);
}
// Whether doubles hold numbers of these formats and exact products of the first.
inline bool holds(FloatFormat from, FloatFormat to, const FloatState &state) {
    return from.width() <= 16 && to.width() <= 32 && float32_host::takes(state);
}
// Rounds what a double holds exactly to a narrower format, unless overflow or underflow might happen.
inline bool narrowed(FloatFormat narrow, double exact, uint64_t &result, FloatState &state) {
    const int surplus = format.fraction_bits - narrow.fraction_bits;
    const uint64_t magnitude = bits(exact) & format.magnitude();
    const uint64_t rounded = (magnitude + (uint64_t{1} << (surplus - 1)) - 1 + (magnitude >> surplus & 1)) >> surplus;
    const uint64_t smallest = uint64_t{1} << narrow.fraction_bits;
    const uint64_t found = rounded - (static_cast<uint64_t>(format.bias() - narrow.bias()) << narrow.fraction_bits);
    if (found - (smallest + 1) >= narrow.infinity() - (smallest + 1))
        return false;
    float32_host::note_inexact((magnitude & ((uint64_t{1} << surplus) - 1)) != 0, state);
    result = found | (bits(exact) & format.sign()) >> (format.width() - narrow.width());
    return true;
}

} // namespace float64_host

// Products and the first operand of a sum are of format `from`, addends and results of format `to`.
namespace floats {

inline bool is_single(FloatFormat from, FloatFormat to) {
    return from == float_format::single_ && to == float_format::single_;
}
inline uint32_t narrow(uint64_t a) { return static_cast<uint32_t>(a); }

inline uint64_t add(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, FloatState &state) {
    namespace host = float64_host;
    if (is_single(from, to))
        return f32_add(narrow(a), narrow(b), state);
    if (host::takes(from, to, state) && host::takes(a) && host::takes(b)) {
        const double x = host::number(a), y = host::number(b), sum = x + y;
        if (host::is_plain(host::bits(sum))) {
            if (!float32_host::knows_inexact(state))
                float32_host::note_inexact(float32_host::sum_error(x, y, sum) != 0, state);
            return host::bits(sum);
        }
    }
    if (host::holds(from, to, state) && host::takes(from, a) && host::takes(to, b)) {
        const double x = host::widened(from, a), y = host::widened(to, b), sum = x + y;
        if (uint64_t result = 0; float32_host::sum_error(x, y, sum) == 0 && host::narrowed(to, sum, result, state))
            return result;
    }
    return floats_exact::add(from, to, a, b, state);
}

inline uint64_t multiply(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, FloatState &state) {
    namespace host = float64_host;
    if (is_single(from, to))
        return f32_mul(narrow(a), narrow(b), state);
    if (host::takes(from, to, state) && host::takes(a) && host::takes(b)) {
        const double x = host::number(a), y = host::number(b), product = x * y;
        if (host::is_plain(host::bits(product)) && std::abs(product) > host::smallest_product) {
            if (!float32_host::knows_inexact(state))
                float32_host::note_inexact(std::fma(x, y, -product) != 0, state);
            return host::bits(product);
        }
    }
    if (host::holds(from, to, state) && host::takes(from, a) && host::takes(from, b)) {
        const double product = host::widened(from, a) * host::widened(from, b);
        if (uint64_t result = 0; host::narrowed(to, product, result, state))
            return result;
    }
    return floats_exact::multiply(from, to, a, b, state);
}

inline uint64_t multiply_add(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, uint64_t c, FloatState &state) {
    namespace host = float64_host;
    if (is_single(from, to))
        return f32_fmadd(narrow(a), narrow(b), narrow(c), state);
    if (host::takes(from, to, state) && host::takes(a) && host::takes(b) && host::takes(c)) {
        const double x = host::number(a), y = host::number(b), z = host::number(c);
        const double result = std::fma(x, y, z);
        if (host::is_plain(host::bits(result))) {
            if (float32_host::knows_inexact(state))
                return host::bits(result);
            const double product = x * y, sum = product + z;
            const double error = std::fma(x, y, -product) + float32_host::sum_error(product, z, sum);
            if (sum == result && error == 0 && std::abs(product) > host::smallest_product)
                return host::bits(result); // exact; otherwise the slow way finds out
        }
    }
    if (host::holds(from, to, state) && host::takes(from, a) && host::takes(from, b) && host::takes(to, c)) {
        const double product = host::widened(from, a) * host::widened(from, b), addend = host::widened(to, c);
        const double sum = product + addend;
        if (uint64_t result = 0;
            float32_host::sum_error(product, addend, sum) == 0 && host::narrowed(to, sum, result, state))
            return result;
    }
    return floats_exact::multiply_add(from, to, a, b, c, state);
}

// a * b + c * d + e with one rounding.
inline uint64_t dot(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                    FloatState &state) {
    namespace host = float64_host;
    // Doubles hold such products, and mostly all bits of their sums, too.
    if (to == float_format::single_ && float32_host::takes(state) && host::takes(from, a) && host::takes(from, b) &&
        host::takes(from, c) && host::takes(from, d) && host::takes(to, e)) {
        const double first = host::widened(from, a) * host::widened(from, b);
        const double second = host::widened(from, c) * host::widened(from, d);
        const double both = first + second, addend = host::widened(to, e), sum = both + addend;
        const auto result = static_cast<float>(sum);
        if (float32_host::sum_error(first, second, both) == 0 && float32_host::sum_error(both, addend, sum) == 0 &&
            float32_host::is_plain(float32_host::bits(result))) {
            if (!float32_host::knows_inexact(state))
                float32_host::note_inexact(static_cast<double>(result) != sum, state);
            return float32_host::bits(result);
        }
    }
    return floats_exact::dot(from, to, a, b, c, d, e, state);
}

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
