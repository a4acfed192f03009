// What rows of xfloat.inc compute: scalars in the low bits of a register below ones (NaN boxes), or lanes.
#pragma once

#include "isa/float_lanes.h"

#include <cstdint>

namespace tilewright {

// Operands of an instruction as its row names them: rs1 (or an integer register, with its sign), rs2, and rs3 or what the
// destination holds.
struct FloatCall {
    uint64_t a = 0, b = 0, c = 0;
    uint32_t formats = 0; // fmode: bit 0 the result, bit 1 the operands are of the alternate format
    FloatState state{};
    bool unboxed = false; // an operand was no scalar of its format, so that it counted as a NaN
};

namespace float_ops {

enum class Arithmetic { add, sub, mul, div, sqrt, min, max, sgnj, sgnjn, sgnjx, madd, msub, nmadd, nmsub };
enum class Comparison { eq, ne, lt, ge, le, gt };

constexpr FloatFormat format_of(char letter, bool alternate) {
    switch (letter) {
    case 'D':
        return float_format::double_;
    case 'S':
        return float_format::single_;
    case 'H':
        return alternate ? float_format::bfloat : float_format::half;
    default:
        return alternate ? float_format::e4m3 : float_format::e5m2;
    }
}
constexpr int width_of(char letter) { return format_of(letter, false).width(); }
constexpr int lanes_of(char letter) { return 64 / width_of(letter); }

template <char F> FloatFormat source(const FloatCall &in) { return format_of(F, (in.formats & 2) != 0); }
template <char F> FloatFormat target(const FloatCall &in) { return format_of(F, (in.formats & 1) != 0); }

template <char F> constexpr uint64_t box = F == 'D' ? 0 : ~uint64_t{0} << (width_of(F) % 64);

template <char F> uint64_t unboxed(FloatCall &in, uint64_t value, FloatFormat format) {
    if ((value & box<F>) == box<F>)
        return value & ~box<F>;
    in.unboxed = true;
    return format.canonical_nan();
}

template <char F> uint64_t lane(uint64_t value, int i) {
    return value >> (i * width_of(F)) & format_of(F, false).mask();
}
template <char F> uint64_t placed(uint64_t value, int i) {
    return (value & format_of(F, false).mask()) << (i * width_of(F));
}

template <Arithmetic K>
uint64_t compute(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, uint64_t c, FloatState &state) {
    using enum Arithmetic;
    if constexpr (K == add)
        return floats::add(from, to, a, b, state);
    if constexpr (K == sub)
        return floats::add(from, to, a, b ^ to.sign(), state);
    if constexpr (K == mul)
        return floats::multiply(from, to, a, b, state);
    if constexpr (K == div)
        return floats::divide(from, a, b, state);
    if constexpr (K == sqrt)
        return floats::square_root(from, a, state);
    if constexpr (K == min)
        return floats::minimum(from, a, b, state);
    if constexpr (K == max)
        return floats::maximum(from, a, b, state);
    if constexpr (K == sgnj)
        return (a & from.magnitude()) | (b & from.sign());
    if constexpr (K == sgnjn)
        return (a & from.magnitude()) | (~b & from.sign());
    if constexpr (K == sgnjx)
        return a ^ (b & from.sign());
    if constexpr (K == madd)
        return floats::multiply_add(from, to, a, b, c, state);
    if constexpr (K == msub)
        return floats::multiply_add(from, to, a, b, c ^ to.sign(), state);
    if constexpr (K == nmadd)
        return floats::multiply_add(from, to, a ^ from.sign(), b, c ^ to.sign(), state);
    return floats::multiply_add(from, to, a ^ from.sign(), b, c, state);
}

// Whether an operation has a second and a third operand.
template <Arithmetic K> constexpr bool has_third = K >= Arithmetic::madd;
template <Arithmetic K> constexpr bool is_sum = K == Arithmetic::add || K == Arithmetic::sub;

template <char F, Arithmetic K> uint64_t scalar(FloatCall &in) {
    const FloatFormat from = source<F>(in), to = target<F>(in);
    const uint64_t a = unboxed<F>(in, in.a, from);
    const uint64_t b = K == Arithmetic::sqrt ? 0 : unboxed<F>(in, in.b, is_sum<K> ? to : from);
    const uint64_t c = has_third<K> ? unboxed<F>(in, in.c, to) : 0;
    return box<F> | compute<K>(from, to, a, b, c, in.state);
}

// Whether all lanes may be computed at once.
inline bool takes_lanes(const FloatCall &in) { return in.formats == 0 && float32_host::takes(in.state); }

// The lanes of the lowest bits in all of a register.
template <int Bits> uint64_t replicated(uint64_t value) {
    constexpr uint64_t low = (uint64_t{1} << Bits) - 1, ones = ~uint64_t{0} / low;
    return (value & low) * ones;
}

template <char F, Arithmetic K, bool Replicated> bool lanes_at_once(FloatCall &in, uint64_t &result) {
    using enum Arithmetic;
    constexpr bool is_product = K == mul || has_third<K>;
    constexpr float_lanes::Terms terms{is_product, K != mul, K == nmadd || K == nmsub,
                                       K == sub || K == msub || K == nmadd};
    const uint64_t b = Replicated ? replicated<width_of(F)>(in.b) : in.b;
    if constexpr (F == 'S' && (is_sum<K> || is_product))
        return takes_lanes(in) && float_lanes::singles(terms, in.a, b, in.c, result, in.state);
    if constexpr (F == 'H' && (is_sum<K> || is_product))
        return takes_lanes(in) && float_lanes::halves(terms, in.a, b, in.c, result, in.state);
    return false;
}

template <char F, Arithmetic K, bool Replicated> uint64_t lanes(FloatCall &in) {
    if (uint64_t found = 0; lanes_at_once<F, K, Replicated>(in, found))
        return found;
    const FloatFormat from = source<F>(in), to = target<F>(in);
    uint64_t result = 0;
    for (int i = 0; i < lanes_of(F); ++i)
        result |= placed<F>(
            compute<K>(from, to, lane<F>(in.a, i), lane<F>(in.b, Replicated ? 0 : i), lane<F>(in.c, i), in.state), i);
    return result;
}

template <Comparison K> uint64_t holds(FloatFormat format, uint64_t a, uint64_t b, FloatState &state) {
    using enum Comparison;
    const bool ordered = !format.is_nan(a) && !format.is_nan(b);
    if constexpr (K == eq)
        return floats::eq(format, a, b, state);
    if constexpr (K == ne)
        return floats::eq(format, a, b, state) == 0;
    if constexpr (K == lt)
        return floats::lt(format, a, b, state);
    if constexpr (K == ge)
        return floats::lt(format, a, b, state) == 0 && ordered;
    if constexpr (K == le)
        return floats::le(format, a, b, state);
    return floats::le(format, a, b, state) == 0 && ordered;
}

template <char F, Comparison K> uint64_t compared(FloatCall &in) {
    const FloatFormat format = source<F>(in);
    const uint64_t a = unboxed<F>(in, in.a, format);
    return holds<K>(format, a, unboxed<F>(in, in.b, format), in.state);
}

template <char F, Comparison K, bool Replicated> uint64_t lanes_compared(FloatCall &in) {
    uint64_t result = 0;
    for (int i = 0; i < lanes_of(F); ++i)
        result |= holds<K>(source<F>(in), lane<F>(in.a, i), lane<F>(in.b, Replicated ? 0 : i), in.state) << i;
    return result;
}

template <char F> uint64_t classified(FloatCall &in) {
    return floats::classify(source<F>(in), unboxed<F>(in, in.a, source<F>(in)));
}

// Eight bits for each lane: negative, positive, quiet NaN, signalling NaN, zero, subnormal, normal, infinite.
template <char F> uint64_t lanes_classified(FloatCall &in) {
    uint64_t result = 0;
    for (int i = 0; i < lanes_of(F); ++i) {
        const uint32_t mask = floats::classify(source<F>(in), lane<F>(in.a, i));
        const bool negative = (mask & 0x0f) != 0;
        const auto either = [mask](int low, int high) { return (mask >> low & 1) | (mask >> high & 1); };
        const uint64_t block = (negative ? 0x80u : 0x40u) | (mask >> 9 & 1) << 5 | (mask >> 8 & 1) << 4 |
                               either(3, 4) << 3 | either(2, 5) << 2 | either(1, 6) << 1 | either(0, 7);
        result |= block << (8 * i);
    }
    return result;
}

template <char To, char From> uint64_t converted(FloatCall &in) {
    const uint64_t a = unboxed<From>(in, in.a, source<From>(in));
    return box<To> | floats::convert(source<From>(in), target<To>(in), a, in.state);
}

template <char F, bool Signed> uint64_t to_integer(FloatCall &in) {
    return floats::to_integer(source<F>(in), unboxed<F>(in, in.a, source<F>(in)), 32, Signed, in.state);
}

template <char F, bool Signed> uint64_t from_integer(FloatCall &in) {
    const auto word = static_cast<uint32_t>(in.a);
    const int64_t value = Signed ? int64_t{static_cast<int32_t>(word)} : int64_t{word};
    return box<F> | floats::from_integer(target<F>(in), value, in.state);
}

// As many lanes as the wider format has; those of the narrower one are the lower or the upper half of its register.
// Lanes of the result beyond these keep what they hold.
template <char To, char From, bool Upper> uint64_t lanes_converted(FloatCall &in) {
    constexpr int count = lanes_of(width_of(To) > width_of(From) ? To : From);
    constexpr int first_to = Upper && lanes_of(To) > count ? count : 0;
    constexpr int first_from = Upper && lanes_of(From) > count ? count : 0;
    uint64_t result = in.c;
    for (int i = 0; i < count; ++i) {
        const uint64_t value =
            floats::convert(source<From>(in), target<To>(in), lane<From>(in.a, first_from + i), in.state);
        result &= ~placed<To>(~uint64_t{0}, first_to + i);
        result |= placed<To>(value, first_to + i);
    }
    return result;
}

template <char F, bool Signed> uint64_t lanes_to_integers(FloatCall &in) {
    uint64_t result = 0;
    for (int i = 0; i < lanes_of(F); ++i)
        result |= placed<F>(floats::to_integer(source<F>(in), lane<F>(in.a, i), width_of(F), Signed, in.state), i);
    return result;
}

template <char F, bool Signed> uint64_t lanes_from_integers(FloatCall &in) {
    uint64_t result = 0;
    for (int i = 0; i < lanes_of(F); ++i) {
        const auto bits = static_cast<int64_t>(lane<F>(in.a, i) << (64 - width_of(F)));
        const int64_t value = Signed ? bits >> (64 - width_of(F)) : static_cast<int64_t>(lane<F>(in.a, i));
        result |= placed<F>(floats::from_integer(target<F>(in), value, in.state), i);
    }
    return result;
}

template <char To, char From, int First> uint64_t cast_and_pack(FloatCall &in) {
    uint64_t result = in.c;
    const uint64_t operands[] = {in.a, in.b};
    for (int i = 0; i < 2; ++i) {
        const uint64_t value = floats::convert(source<From>(in), target<To>(in), lane<From>(operands[i], 0), in.state);
        result &= ~placed<To>(~uint64_t{0}, First + i);
        result |= placed<To>(value, First + i);
    }
    return result;
}

template <char To, char From, bool Accumulates> uint64_t expanding(FloatCall &in) {
    const FloatFormat from = source<From>(in), to = target<To>(in);
    const uint64_t a = unboxed<From>(in, in.a, from), b = unboxed<From>(in, in.b, from);
    if constexpr (!Accumulates)
        return box<To> | floats::multiply(from, to, a, b, in.state);
    return box<To> | floats::multiply_add(from, to, a, b, unboxed<To>(in, in.c, to), in.state);
}

// Rounded once.
template <char To, char From, bool Negated, bool Replicated> uint64_t dot_product(FloatCall &in) {
    if constexpr (To == 'S' && From == 'H') {
        const uint64_t a = in.a ^ (Negated ? 0x8000800080008000 : 0), b = Replicated ? replicated<32>(in.b) : in.b;
        if (uint64_t found = 0; takes_lanes(in) && float_lanes::dot_products(a, b, in.c, found, in.state))
            return found;
    }
    const FloatFormat from = source<From>(in), to = target<To>(in);
    const uint64_t sign = Negated ? from.sign() : 0;
    uint64_t result = 0;
    for (int i = 0; i < lanes_of(To); ++i) {
        const int even = 2 * i, other = Replicated ? 0 : even;
        result |= placed<To>(floats::dot(from, to, lane<From>(in.a, even) ^ sign, lane<From>(in.b, other),
                                         lane<From>(in.a, even + 1) ^ sign, lane<From>(in.b, other + 1),
                                         lane<To>(in.c, i), in.state),
                             i);
    }
    return result;
}

// The same with ones for factors. Lanes that no sum is for become ones, as FPnew leaves those that it does not use.
template <char To, char From, bool Negated> uint64_t sum_of_pairs(FloatCall &in) {
    const FloatFormat to = target<To>(in), from = To == From ? to : source<From>(in);
    const uint64_t one = static_cast<uint64_t>(from.bias()) << from.fraction_bits, sign = Negated ? from.sign() : 0;
    constexpr int count = lanes_of(From) / 2;
    uint64_t result = count < lanes_of(To) ? ~uint64_t{0} << (count * width_of(To)) : 0;
    for (int i = 0; i < count; ++i)
        result |= placed<To>(floats::dot(from, to, lane<From>(in.a, 2 * i) ^ sign, one,
                                         lane<From>(in.a, 2 * i + 1) ^ sign, one, lane<To>(in.c, i), in.state),
                             i);
    return result;
}

template <char F> uint64_t moved_to_integer(const FloatCall &in) {
    constexpr int unused = 64 - width_of(F);
    return static_cast<uint64_t>(static_cast<int64_t>(in.a << unused) >> unused);
}
template <char F> uint64_t moved_from_integer(const FloatCall &in) { return box<F> | lane<F>(in.a, 0); }

} // namespace float_ops

// A result, and what happened beside it.
struct FloatResult {
    uint64_t value;
    uint32_t flags;
    bool unboxed;
};

// What a FLOAT row needs and does.
struct FloatRow {
    uint64_t (*compute)(FloatCall &in) = nullptr;
    bool reads_a = false, reads_b = false, reads_c = false; // FP registers rs1, rs2, rs3
    bool reads_d = false;                                   // the destination
    bool integer_operand = false, integer_result = false;
    bool rounds = false;  // by a mode in the encoding
    bool divides = false; // or takes a root
    // The same where formats are the first ones and rounding is to nearest-even: with that known, most of the work goes.
    // It takes the flags that are set already, and adds its own.
    FloatResult (*compute_usual)(uint64_t a, uint64_t b, uint64_t c, uint32_t flags) = nullptr;
};
const FloatRow &float_row(uint16_t code);

} // namespace tilewright
