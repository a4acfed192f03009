#include "isa/floats.h"

#include "isa/float_number.h"

#include <algorithm>

namespace tilewright {

namespace {

bool sign_of(FloatFormat format, uint64_t a) { return (a & format.sign()) != 0; }

uint64_t with_sign(FloatFormat format, bool negative, uint64_t magnitude) {
    return (negative ? format.sign() : 0) | magnitude;
}

Number unpack(FloatFormat format, uint64_t a) {
    const int biased = static_cast<int>((a & format.infinity()) >> format.fraction_bits);
    const uint64_t one = uint64_t{1} << format.fraction_bits;
    const uint64_t fraction = a & (one - 1);
    return {sign_of(format, a), std::max(biased, 1) - format.bias() - format.fraction_bits,
            biased == 0 ? fraction : fraction | one};
}

Wide shift_right_sticky(Wide value, int count) {
    if (count >= wide_bits)
        return value != 0;
    const Wide lost = value & ((Wide{1} << count) - 1);
    return (value >> count) | (lost != 0 ? 1 : 0);
}

struct Rounded {
    Wide value;
    bool inexact;
};

// value / 2^count as an integer; 0 < count < 128.
Rounded round_off(Wide value, int count, bool negative, uint32_t rounding) {
    const Wide half = Wide{1} << (count - 1);
    const Wide lost = value & (2 * half - 1);
    const Wide kept = value >> count;
    bool up = false;
    switch (rounding) {
    case rounding_mode::nearest_even:
        up = lost > half || (lost == half && (kept & 1) != 0);
        break;
    case rounding_mode::nearest_away:
        up = lost >= half;
        break;
    case rounding_mode::down:
        up = negative && lost != 0;
        break;
    case rounding_mode::up:
        up = !negative && lost != 0;
        break;
    default:
        break;
    }
    return {kept + (up ? 1 : 0), lost != 0};
}

uint64_t overflowed(FloatFormat format, bool negative, FloatState &state) {
    state.flags |= float_flag::overflow | float_flag::inexact;
    const bool finite = state.rounding == rounding_mode::toward_zero ||
                        (state.rounding == rounding_mode::down && !negative) ||
                        (state.rounding == rounding_mode::up && negative);
    return with_sign(format, negative, format.infinity() - (finite ? 1 : 0));
}

// The one place where results are rounded; not for zero.
uint64_t round_and_pack(FloatFormat format, const Number &exact, FloatState &state) {
    const int precision = format.fraction_bits + 1;
    const int surplus = wide_bits - precision;
    const Wide carried_out = Wide{1} << precision;
    const int shift = leading_zeros(exact.significand);
    const Wide significand = exact.significand << shift;
    const int leading = exact.exponent - shift + wide_bits - 1;
    const int smallest = 1 - format.bias();
    Rounded rounded = round_off(significand, surplus, exact.negative, state.rounding);
    int biased = leading + format.bias();
    if (leading < smallest) {
        // Tiny after rounding: as if exponents had no lower bound.
        const bool tiny = leading < smallest - 1 || rounded.value != carried_out;
        rounded =
            round_off(shift_right_sticky(significand, smallest - leading), surplus, exact.negative, state.rounding);
        biased = 1;
        state.flags |= tiny && rounded.inexact ? float_flag::underflow : 0;
    }
    if (biased + (rounded.value == carried_out ? 1 : 0) > 2 * format.bias())
        return overflowed(format, exact.negative, state);
    state.flags |= rounded.inexact ? float_flag::inexact : 0;
    const uint64_t field = static_cast<uint64_t>(biased - 1) << format.fraction_bits;
    return with_sign(format, exact.negative, field + static_cast<uint64_t>(rounded.value));
}

uint64_t invalid(FloatFormat format, FloatState &state) {
    state.flags |= float_flag::invalid;
    return format.canonical_nan();
}

void note_signalling(bool signalling, FloatState &state) { state.flags |= signalling ? float_flag::invalid : 0; }

uint64_t zero_sum(FloatFormat format, bool a_negative, bool b_negative, const FloatState &state) {
    return with_sign(format, a_negative == b_negative ? a_negative : state.rounding == rounding_mode::down, 0);
}

Number product_of(const Number &a, const Number &b) {
    return {a.negative != b.negative, a.exponent + b.exponent, a.significand * b.significand};
}

// Both finite and not zero.
uint64_t add_finite(FloatFormat format, Number a, Number b, FloatState &state) {
    const auto normalised = [](Number n) {
        const int shift = leading_zeros(n.significand) - 1;
        return Number{n.negative, n.exponent - shift, n.significand << shift};
    };
    a = normalised(a);
    b = normalised(b);
    if (a.exponent < b.exponent || (a.exponent == b.exponent && a.significand < b.significand))
        std::swap(a, b);
    const Wide smaller = shift_right_sticky(b.significand, a.exponent - b.exponent);
    const Wide sum = a.negative == b.negative ? a.significand + smaller : a.significand - smaller;
    if (sum == 0)
        return zero_sum(format, a.negative, b.negative, state);
    return round_and_pack(format, {a.negative, a.exponent, sum}, state);
}

uint64_t add_infinite(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, FloatState &state) {
    const bool first = from.is_infinite(a), second = to.is_infinite(b);
    if (first && second && sign_of(from, a) != sign_of(to, b))
        return invalid(to, state);
    return with_sign(to, first ? sign_of(from, a) : sign_of(to, b), to.infinity());
}

} // namespace

uint64_t floats_exact::add(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, FloatState &state) {
    if (from.is_nan(a) || to.is_nan(b)) {
        note_signalling(from.is_signalling(a) || to.is_signalling(b), state);
        return to.canonical_nan();
    }
    if (from.is_infinite(a) || to.is_infinite(b))
        return add_infinite(from, to, a, b, state);
    if (from.is_zero(a) && to.is_zero(b))
        return zero_sum(to, sign_of(from, a), sign_of(to, b), state);
    if (from.is_zero(a))
        return b;
    return to.is_zero(b) ? round_and_pack(to, unpack(from, a), state)
                         : add_finite(to, unpack(from, a), unpack(to, b), state);
}

uint64_t floats_exact::multiply(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, FloatState &state) {
    if (from.is_nan(a) || from.is_nan(b)) {
        note_signalling(from.is_signalling(a) || from.is_signalling(b), state);
        return to.canonical_nan();
    }
    const bool negative = sign_of(from, a) != sign_of(from, b);
    const bool zero = from.is_zero(a) || from.is_zero(b);
    if (from.is_infinite(a) || from.is_infinite(b))
        return zero ? invalid(to, state) : with_sign(to, negative, to.infinity());
    return zero ? with_sign(to, negative, 0) : round_and_pack(to, product_of(unpack(from, a), unpack(from, b)), state);
}

uint64_t floats_exact::multiply_add(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, uint64_t c,
                                    FloatState &state) {
    const bool zero = from.is_zero(a) || from.is_zero(b);
    const bool infinite = from.is_infinite(a) || from.is_infinite(b);
    if (from.is_nan(a) || from.is_nan(b)) {
        note_signalling(from.is_signalling(a) || from.is_signalling(b) || to.is_signalling(c), state);
        return to.canonical_nan();
    }
    if (zero && infinite)
        return invalid(to, state); // even if the addend is a quiet NaN
    if (to.is_nan(c)) {
        note_signalling(to.is_signalling(c), state);
        return to.canonical_nan();
    }
    const bool negative = sign_of(from, a) != sign_of(from, b);
    if (infinite || to.is_infinite(c))
        return add_infinite(to, to, infinite ? with_sign(to, negative, to.infinity()) : 0, c, state);
    if (zero)
        return to.is_zero(c) ? zero_sum(to, negative, sign_of(to, c), state) : c;
    const Number product = product_of(unpack(from, a), unpack(from, b));
    return to.is_zero(c) ? round_and_pack(to, product, state) : add_finite(to, product, unpack(to, c), state);
}

uint64_t floats_exact::dot(FloatFormat from, FloatFormat to, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                           FloatState &state) {
    bool nan = to.is_nan(e), wrong = to.is_signalling(e), plus = false, minus = false;
    for (const auto &[x, y] : {std::pair{a, b}, std::pair{c, d}}) {
        nan |= from.is_nan(x) || from.is_nan(y);
        wrong |= from.is_signalling(x) || from.is_signalling(y);
        const bool infinite = from.is_infinite(x) || from.is_infinite(y);
        wrong |= infinite && (from.is_zero(x) || from.is_zero(y));
        if (infinite && !from.is_nan(x) && !from.is_nan(y))
            (sign_of(from, x) != sign_of(from, y) ? minus : plus) = true;
    }
    if (to.is_infinite(e))
        (sign_of(to, e) ? minus : plus) = true;
    wrong |= !nan && plus && minus;
    if (nan || wrong) {
        note_signalling(wrong, state);
        return to.canonical_nan();
    }
    if (plus || minus)
        return with_sign(to, minus, to.infinity());
    const Number first = product_of(unpack(from, a), unpack(from, b));
    const Number second = product_of(unpack(from, c), unpack(from, d));
    const Number third = unpack(to, e);
    Sum sum;
    for (const Number &term : {first, second, third})
        sum.add(term);
    const Number total = sum.value();
    if (total.significand == 0) {
        const bool same = first.negative == second.negative && second.negative == third.negative;
        return with_sign(to, same ? first.negative : state.rounding == rounding_mode::down, 0);
    }
    return round_and_pack(to, total, state);
}

uint64_t floats::divide(FloatFormat format, uint64_t a, uint64_t b, FloatState &state) {
    if (format == float_format::single_)
        return f32_div(narrow(a), narrow(b), state);
    if (format.is_nan(a) || format.is_nan(b)) {
        note_signalling(format.is_signalling(a) || format.is_signalling(b), state);
        return format.canonical_nan();
    }
    const bool negative = sign_of(format, a) != sign_of(format, b);
    if (format.is_infinite(a))
        return format.is_infinite(b) ? invalid(format, state) : with_sign(format, negative, format.infinity());
    if (format.is_zero(b)) {
        if (format.is_zero(a))
            return invalid(format, state);
        state.flags |= float_flag::divide_by_zero;
        return with_sign(format, negative, format.infinity());
    }
    if (format.is_zero(a) || format.is_infinite(b))
        return with_sign(format, negative, 0);
    // 127 bits over 53: the quotient has at least 74, the last of them sticky.
    const Number dividend = unpack(format, a), divisor = unpack(format, b);
    const int shift = leading_zeros(dividend.significand) - 1;
    const Wide shifted = dividend.significand << shift;
    const Wide quotient = shifted / divisor.significand;
    const bool rest = quotient * divisor.significand != shifted;
    return round_and_pack(format, {negative, dividend.exponent - shift - divisor.exponent, quotient | (rest ? 1 : 0)},
                          state);
}

uint64_t floats::square_root(FloatFormat format, uint64_t a, FloatState &state) {
    if (format.is_nan(a)) {
        note_signalling(format.is_signalling(a), state);
        return format.canonical_nan();
    }
    if (format.is_zero(a))
        return a;
    if (sign_of(format, a))
        return invalid(format, state);
    if (format.is_infinite(a))
        return a;
    // An even exponent, and 127 or 128 bits under the root: it has 64, the last of them sticky.
    Number radicand = unpack(format, a);
    const int shift = leading_zeros(radicand.significand);
    radicand = {false, radicand.exponent - shift, radicand.significand << shift};
    if (radicand.exponent % 2 != 0) {
        radicand.exponent += 1;
        radicand.significand >>= 1;
    }
    Wide root = 0;
    for (Wide bit = Wide{1} << 63; bit != 0; bit >>= 1)
        if ((root | bit) * (root | bit) <= radicand.significand)
            root |= bit;
    const bool rest = root * root != radicand.significand;
    return round_and_pack(format, {false, radicand.exponent / 2, root | (rest ? 1 : 0)}, state);
}

uint64_t floats::convert(FloatFormat from, FloatFormat to, uint64_t a, FloatState &state) {
    if (from.is_nan(a)) {
        note_signalling(from.is_signalling(a), state);
        return to.canonical_nan();
    }
    const bool negative = sign_of(from, a);
    if (from.is_infinite(a))
        return with_sign(to, negative, to.infinity());
    return from.is_zero(a) ? with_sign(to, negative, 0) : round_and_pack(to, unpack(from, a), state);
}

namespace {

// Orders all numbers like their values, except that -0 is below +0.
int64_t order_key(FloatFormat format, uint64_t a) {
    const auto magnitude = static_cast<int64_t>(a & format.magnitude());
    return sign_of(format, a) ? -1 - magnitude : magnitude;
}

uint64_t select(FloatFormat format, uint64_t a, uint64_t b, bool a_wins, FloatState &state) {
    note_signalling(format.is_signalling(a) || format.is_signalling(b), state);
    if (format.is_nan(a))
        return format.is_nan(b) ? format.canonical_nan() : b;
    return format.is_nan(b) || a_wins ? a : b;
}

// -1, 0 or 1; 2 where they are not ordered.
int compare(FloatFormat format, uint64_t a, uint64_t b, bool quietly, FloatState &state) {
    if (format.is_nan(a) || format.is_nan(b)) {
        note_signalling(!quietly || format.is_signalling(a) || format.is_signalling(b), state);
        return 2;
    }
    if (format.is_zero(a) && format.is_zero(b))
        return 0;
    const int64_t x = order_key(format, a), y = order_key(format, b);
    return x < y ? -1 : x > y;
}

} // namespace

uint64_t floats::minimum(FloatFormat format, uint64_t a, uint64_t b, FloatState &state) {
    return select(format, a, b, order_key(format, a) < order_key(format, b), state);
}
uint64_t floats::maximum(FloatFormat format, uint64_t a, uint64_t b, FloatState &state) {
    return select(format, a, b, order_key(format, a) > order_key(format, b), state);
}
uint64_t floats::eq(FloatFormat format, uint64_t a, uint64_t b, FloatState &state) {
    return compare(format, a, b, true, state) == 0;
}
uint64_t floats::lt(FloatFormat format, uint64_t a, uint64_t b, FloatState &state) {
    return compare(format, a, b, false, state) == -1;
}
uint64_t floats::le(FloatFormat format, uint64_t a, uint64_t b, FloatState &state) {
    return compare(format, a, b, false, state) <= 0;
}

uint32_t floats::classify(FloatFormat format, uint64_t a) {
    if (format.is_nan(a))
        return format.is_signalling(a) ? 1u << 8 : 1u << 9;
    const uint64_t magnitude = a & format.magnitude();
    const int distance = magnitude == format.infinity()                     ? 0
                         : magnitude >= uint64_t{1} << format.fraction_bits ? 1
                         : magnitude != 0                                   ? 2
                                                                            : 3;
    return 1u << (sign_of(format, a) ? distance : 7 - distance);
}

uint64_t floats::to_integer(FloatFormat format, uint64_t a, int bits, bool is_signed, FloatState &state) {
    const uint64_t ones = (uint64_t{1} << bits) - 1;
    const uint64_t highest = is_signed ? ones >> 1 : ones;
    if (format.is_nan(a)) {
        state.flags |= float_flag::invalid;
        return highest;
    }
    const bool negative = sign_of(format, a);
    const uint64_t limit = negative ? (is_signed ? highest + 1 : 0) : highest;
    const Number number = unpack(format, a);
    Rounded magnitude{number.significand, false};
    if (number.exponent >= 0)
        magnitude.value = number.exponent < 64 ? number.significand << number.exponent : Wide{1} << 100;
    else
        magnitude =
            round_off(shift_right_sticky(number.significand << 2, -number.exponent), 2, negative, state.rounding);
    if (format.is_infinite(a) || magnitude.value > limit) {
        state.flags |= float_flag::invalid;
        return (negative ? 0 - limit : limit) & ones;
    }
    state.flags |= magnitude.inexact ? float_flag::inexact : 0;
    const auto value = static_cast<uint64_t>(magnitude.value);
    return (negative ? 0 - value : value) & ones;
}

uint64_t floats::from_integer(FloatFormat format, int64_t value, FloatState &state) {
    const auto pattern = static_cast<uint64_t>(value);
    return value == 0 ? 0 : round_and_pack(format, {value < 0, 0, value < 0 ? 0 - pattern : pattern}, state);
}

} // namespace tilewright
