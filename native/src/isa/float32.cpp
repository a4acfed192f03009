#include "isa/float32.h"

#include <utility>

namespace tilewright {

namespace {

namespace bits = float32_bits;

constexpr int fraction_bits = 23;
constexpr int precision = fraction_bits + 1;
constexpr int exponent_bias = 127;
constexpr int smallest_exponent = -126; // of the leading one of a normal number
constexpr int word_bits = 64;

// A finite number: significand * 2^exponent, negated if negative. A significand that stands for bits it has no room for
// has its lowest bit set instead (a sticky bit); it is wide enough then for that bit to lie below all rounding.
struct Number {
    bool negative;
    int exponent;
    uint64_t significand;
};

bool sign_of(uint32_t a) { return (a & bits::sign) != 0; }

uint32_t with_sign(bool negative, uint32_t magnitude) { return (negative ? bits::sign : 0) | magnitude; }

Number unpack(uint32_t a) {
    const int biased_exponent = static_cast<int>((a & bits::infinity) >> fraction_bits);
    const uint32_t fraction = a & (bits::smallest_normal - 1);
    const bool subnormal = biased_exponent == 0;
    return {sign_of(a), (subnormal ? 1 : biased_exponent) - exponent_bias - fraction_bits,
            subnormal ? fraction : fraction | bits::smallest_normal};
}

// The same number with its highest one in bit `position`; not for zero.
Number with_leading_one_at(int position, Number number) {
    const int shift = position - (word_bits - 1 - std::countl_zero(number.significand));
    return {number.negative, number.exponent - shift, number.significand << shift};
}

uint64_t shift_right_sticky(uint64_t value, int count) {
    if (count >= word_bits) {
        return value != 0;
    }
    const uint64_t lost = value & ((uint64_t{1} << count) - 1);
    return (value >> count) | (lost != 0);
}

struct Rounded {
    uint64_t value;
    bool inexact;
};

// value / 2^count as an integer; 0 < count < 64.
Rounded round_off(uint64_t value, int count, bool negative, uint32_t rounding) {
    const uint64_t half = uint64_t{1} << (count - 1);
    const uint64_t lost = value & (2 * half - 1);
    const uint64_t kept = value >> count;
    bool increment = false;
    switch (rounding) {
    case rounding_mode::nearest_even:
        increment = lost > half || (lost == half && (kept & 1) != 0);
        break;
    case rounding_mode::nearest_away:
        increment = lost >= half;
        break;
    case rounding_mode::down:
        increment = negative && lost != 0;
        break;
    case rounding_mode::up:
        increment = !negative && lost != 0;
        break;
    default:
        break; // toward zero
    }
    return {kept + (increment ? 1 : 0), lost != 0};
}

uint32_t overflowed(bool negative, FloatState &state) {
    state.flags |= float_flag::overflow | float_flag::inexact;
    const uint32_t rounding = state.rounding;
    const bool stays_finite = rounding == rounding_mode::toward_zero ||
                              (rounding == rounding_mode::down && !negative) ||
                              (rounding == rounding_mode::up && negative);
    return with_sign(negative, stays_finite ? bits::largest_finite : bits::infinity);
}

// The one place where results are rounded; not for zero.
uint32_t round_and_pack(const Number &exact, FloatState &state) {
    constexpr int surplus = word_bits - precision;
    constexpr uint64_t carried_out = uint64_t{1} << precision;
    const Number number = with_leading_one_at(word_bits - 1, exact);
    const int leading = number.exponent + word_bits - 1;

    Rounded rounded = round_off(number.significand, surplus, number.negative, state.rounding);
    int biased_exponent = leading + exponent_bias;
    if (leading < smallest_exponent) {
        // Tiny after rounding: as if exponents had no lower bound, the rounded value lies below the normal numbers.
        const bool tiny = leading < smallest_exponent - 1 || rounded.value != carried_out;
        const uint64_t aligned = shift_right_sticky(number.significand, smallest_exponent - leading);
        rounded = round_off(aligned, surplus, number.negative, state.rounding);
        biased_exponent = 1;
        state.flags |= tiny && rounded.inexact ? float_flag::underflow : 0;
    }
    if (biased_exponent + (rounded.value == carried_out ? 1 : 0) > 2 * exponent_bias) {
        return overflowed(number.negative, state);
    }
    state.flags |= rounded.inexact ? float_flag::inexact : 0;
    // The leading one of a normal number, or a carry, adds to the exponent field.
    const uint32_t exponent_field = static_cast<uint32_t>(biased_exponent - 1) << fraction_bits;
    return with_sign(number.negative, exponent_field + static_cast<uint32_t>(rounded.value));
}

uint32_t invalid(FloatState &state) {
    state.flags |= float_flag::invalid;
    return bits::canonical_nan;
}

void note_signalling(bool signalling, FloatState &state) { state.flags |= signalling ? float_flag::invalid : 0; }

// The result of an operation with a NaN operand.
uint32_t quiet_nan(bool signalling, FloatState &state) {
    note_signalling(signalling, state);
    return bits::canonical_nan;
}

uint32_t zero_sum(bool a_negative, bool b_negative, const FloatState &state) {
    const bool negative = a_negative == b_negative ? a_negative : state.rounding == rounding_mode::down;
    return with_sign(negative, 0);
}

// Operands of at most 48 significant bits, not zero. With the leading one in bit 62, a sum cannot overflow, and the
// lowest 15 bits are zero: bits are lost in the alignment only if the difference cancels at most one leading bit.
uint32_t add_finite(Number a, Number b, FloatState &state) {
    constexpr int leading_bit = word_bits - 2;
    a = with_leading_one_at(leading_bit, a);
    b = with_leading_one_at(leading_bit, b);
    if (std::pair(a.exponent, a.significand) < std::pair(b.exponent, b.significand)) {
        std::swap(a, b);
    }
    const uint64_t smaller = shift_right_sticky(b.significand, a.exponent - b.exponent);
    a.significand = a.negative == b.negative ? a.significand + smaller : a.significand - smaller;
    if (a.significand == 0) {
        return zero_sum(true, false, state);
    }
    return round_and_pack(a, state);
}

Number product_of(const Number &a, const Number &b) {
    return {a.negative != b.negative, a.exponent + b.exponent, a.significand * b.significand};
}

uint32_t add_infinite(uint32_t a, uint32_t b, FloatState &state) {
    const bool opposite = bits::is_infinite(a) && bits::is_infinite(b) && a != b;
    if (opposite) {
        return invalid(state);
    }
    return bits::is_infinite(a) ? a : b;
}

// The floor of the square root, digit by digit.
uint64_t integer_root(uint64_t value) {
    uint64_t root = 0;
    uint64_t rest = value;
    for (uint64_t digit = uint64_t{1} << (word_bits - 2); digit != 0; digit >>= 2) {
        if (rest >= root + digit) {
            rest -= root + digit;
            root = (root >> 1) + digit;
        } else {
            root >>= 1;
        }
    }
    return root;
}

} // namespace

uint32_t float32_exact::add(uint32_t a, uint32_t b, FloatState &state) {
    if (bits::is_nan(a) || bits::is_nan(b)) {
        return quiet_nan(bits::is_signalling(a) || bits::is_signalling(b), state);
    }
    if (bits::is_infinite(a) || bits::is_infinite(b)) {
        return add_infinite(a, b, state);
    }
    if (bits::is_zero(b)) {
        return bits::is_zero(a) ? zero_sum(sign_of(a), sign_of(b), state) : a;
    }
    return bits::is_zero(a) ? b : add_finite(unpack(a), unpack(b), state);
}

uint32_t float32_exact::multiply(uint32_t a, uint32_t b, FloatState &state) {
    if (bits::is_nan(a) || bits::is_nan(b)) {
        return quiet_nan(bits::is_signalling(a) || bits::is_signalling(b), state);
    }
    const bool negative = sign_of(a) != sign_of(b);
    const bool zero = bits::is_zero(a) || bits::is_zero(b);
    if (bits::is_infinite(a) || bits::is_infinite(b)) {
        return zero ? invalid(state) : with_sign(negative, bits::infinity);
    }
    return zero ? with_sign(negative, 0) : round_and_pack(product_of(unpack(a), unpack(b)), state);
}

uint32_t float32_exact::divide(uint32_t a, uint32_t b, FloatState &state) {
    if (bits::is_nan(a) || bits::is_nan(b)) {
        return quiet_nan(bits::is_signalling(a) || bits::is_signalling(b), state);
    }
    const bool negative = sign_of(a) != sign_of(b);
    if (bits::is_infinite(a)) {
        return bits::is_infinite(b) ? invalid(state) : with_sign(negative, bits::infinity);
    }
    if (bits::is_zero(b)) {
        if (bits::is_zero(a)) {
            return invalid(state);
        }
        state.flags |= float_flag::divide_by_zero;
        return with_sign(negative, bits::infinity);
    }
    if (bits::is_zero(a) || bits::is_infinite(b)) {
        return with_sign(negative, 0);
    }
    // 64 bits over 24 bits: the quotient has at least 40 bits, the last of them sticky.
    const Number dividend = with_leading_one_at(word_bits - 1, unpack(a));
    const Number divisor = unpack(b);
    const uint64_t quotient = dividend.significand / divisor.significand;
    const bool rest = dividend.significand % divisor.significand != 0;
    return round_and_pack({negative, dividend.exponent - divisor.exponent, quotient | rest}, state);
}

uint32_t float32_exact::square_root(uint32_t a, FloatState &state) {
    if (bits::is_nan(a)) {
        return quiet_nan(bits::is_signalling(a), state);
    }
    if (bits::is_zero(a)) {
        return a;
    }
    if (sign_of(a)) {
        return invalid(state);
    }
    if (bits::is_infinite(a)) {
        return a;
    }
    // An even exponent, and 63 or 64 bits under the root: it has 32 bits, the last of them sticky.
    Number radicand = with_leading_one_at(word_bits - 1, unpack(a));
    if (radicand.exponent % 2 != 0) {
        radicand.exponent += 1;
        radicand.significand >>= 1;
    }
    const uint64_t root = integer_root(radicand.significand);
    const bool rest = root * root != radicand.significand;
    return round_and_pack({false, radicand.exponent / 2, root | rest}, state);
}

uint32_t float32_exact::multiply_add(uint32_t a, uint32_t b, uint32_t c, FloatState &state) {
    const bool zero_product = bits::is_zero(a) || bits::is_zero(b);
    const bool infinite_product = bits::is_infinite(a) || bits::is_infinite(b);
    if (bits::is_nan(a) || bits::is_nan(b)) {
        return quiet_nan(bits::is_signalling(a) || bits::is_signalling(b) || bits::is_signalling(c), state);
    }
    if (zero_product && infinite_product) {
        return invalid(state); // even if the addend is a quiet NaN
    }
    if (bits::is_nan(c)) {
        return quiet_nan(bits::is_signalling(c), state);
    }
    const bool negative = sign_of(a) != sign_of(b);
    if (infinite_product || bits::is_infinite(c)) {
        return add_infinite(infinite_product ? with_sign(negative, bits::infinity) : 0, c, state);
    }
    if (zero_product) {
        return bits::is_zero(c) ? zero_sum(negative, sign_of(c), state) : c;
    }
    const Number product = product_of(unpack(a), unpack(b));
    return bits::is_zero(c) ? round_and_pack(product, state) : add_finite(product, unpack(c), state);
}

namespace {

// Orders all numbers like their values, except that -0 is below +0.
int32_t order_key(uint32_t a) { return static_cast<int32_t>(sign_of(a) ? a ^ bits::magnitude : a); }

uint32_t select_number(uint32_t a, uint32_t b, bool a_wins, FloatState &state) {
    note_signalling(bits::is_signalling(a) || bits::is_signalling(b), state);
    if (bits::is_nan(a)) {
        return bits::is_nan(b) ? bits::canonical_nan : b;
    }
    return bits::is_nan(b) || a_wins ? a : b;
}

bool both_zero(uint32_t a, uint32_t b) { return ((a | b) & bits::magnitude) == 0; }

} // namespace

uint32_t f32_min(uint32_t a, uint32_t b, FloatState &state) {
    return select_number(a, b, order_key(a) < order_key(b), state);
}

uint32_t f32_max(uint32_t a, uint32_t b, FloatState &state) {
    return select_number(a, b, order_key(a) > order_key(b), state);
}

uint32_t f32_eq(uint32_t a, uint32_t b, FloatState &state) {
    if (bits::is_nan(a) || bits::is_nan(b)) {
        note_signalling(bits::is_signalling(a) || bits::is_signalling(b), state);
        return 0;
    }
    return a == b || both_zero(a, b);
}

uint32_t f32_lt(uint32_t a, uint32_t b, FloatState &state) {
    if (bits::is_nan(a) || bits::is_nan(b)) {
        state.flags |= float_flag::invalid;
        return 0;
    }
    return order_key(a) < order_key(b) && !both_zero(a, b);
}

uint32_t f32_le(uint32_t a, uint32_t b, FloatState &state) {
    if (bits::is_nan(a) || bits::is_nan(b)) {
        state.flags |= float_flag::invalid;
        return 0;
    }
    return order_key(a) <= order_key(b) || both_zero(a, b);
}

uint32_t f32_classify(uint32_t a) {
    constexpr int signalling_nan = 8;
    constexpr int other_nan = 9;
    if (bits::is_nan(a)) {
        return uint32_t{1} << (bits::is_signalling(a) ? signalling_nan : other_nan);
    }
    // Infinite, normal, subnormal, zero: mask bits 0 to 3 if negative, 7 down to 4 if positive.
    const uint32_t magnitude = a & bits::magnitude;
    const int distance = magnitude == bits::infinity          ? 0
                         : magnitude >= bits::smallest_normal ? 1
                         : magnitude != 0                     ? 2
                                                              : 3;
    return uint32_t{1} << (sign_of(a) ? distance : 7 - distance);
}

namespace {

// A finite number rounded to an integer, without its sign; what is out of every range stays so.
Rounded integer_magnitude(const Number &number, uint32_t rounding) {
    if (number.exponent >= 0) {
        constexpr int far_out = word_bits - precision;
        return {number.significand << (number.exponent < far_out ? number.exponent : far_out), false};
    }
    // Two more bits keep what decides the rounding when everything else is shifted out.
    const uint64_t aligned = shift_right_sticky(number.significand << 2, -number.exponent);
    return round_off(aligned, 2, number.negative, rounding);
}

uint32_t to_integer(uint32_t a, uint32_t lowest_magnitude, uint32_t highest, FloatState &state) {
    if (bits::is_nan(a)) {
        state.flags |= float_flag::invalid;
        return highest;
    }
    // An infinity unpacks to 2^128, which is out of range as well.
    const Number number = unpack(a);
    const Rounded magnitude = integer_magnitude(number, state.rounding);
    const uint32_t limit = number.negative ? lowest_magnitude : highest;
    if (magnitude.value > limit) {
        state.flags |= float_flag::invalid;
        return number.negative ? 0 - limit : limit;
    }
    state.flags |= magnitude.inexact ? float_flag::inexact : 0;
    const uint32_t value = static_cast<uint32_t>(magnitude.value);
    return number.negative ? 0 - value : value;
}

} // namespace

int32_t f32_to_i32(uint32_t a, FloatState &state) {
    return static_cast<int32_t>(to_integer(a, 0x80000000, 0x7fffffff, state));
}

uint32_t f32_to_u32(uint32_t a, FloatState &state) { return to_integer(a, 0, 0xffffffff, state); }

uint32_t f32_from_i32(int32_t value, FloatState &state) {
    const uint32_t pattern = static_cast<uint32_t>(value);
    return value == 0 ? 0 : round_and_pack({value < 0, 0, value < 0 ? 0 - pattern : pattern}, state);
}

uint32_t f32_from_u32(uint32_t value, FloatState &state) {
    return value == 0 ? 0 : round_and_pack({false, 0, value}, state);
}

} // namespace tilewright
