// Arithmetic of XpulpV2: lanes of bytes and halfwords in a word, bit fields, bounds. A lane's type says its width and
// whether it has a sign. All of it wraps as the hardware does.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tilewright::pulp {

template <class Lane> constexpr unsigned lane_bits = 8 * sizeof(Lane);
template <class Lane> constexpr unsigned lanes = 4 / sizeof(Lane);
template <class Lane> constexpr uint32_t lane_mask = std::numeric_limits<std::make_unsigned_t<Lane>>::max();
// Bits of a lane that say how far to shift.
template <class Lane> constexpr int32_t shift_mask = static_cast<int32_t>(lane_bits<Lane>) - 1;
// One in each lane: a factor that copies the first lane to all.
template <class Lane> constexpr uint32_t ones = ~0u / lane_mask<Lane>;
// The highest bit of each lane.
template <class Lane> constexpr uint32_t high_bits = ones<Lane> << (lane_bits<Lane> - 1);

template <class Lane> constexpr int32_t lane(uint32_t word, uint32_t index) {
    return static_cast<Lane>(word >> (index % lanes<Lane> * lane_bits<Lane>));
}

template <class Lane> constexpr uint32_t with_lane(uint32_t word, uint32_t index, uint32_t value) {
    const uint32_t shift = index % lanes<Lane> * lane_bits<Lane>;
    return (word & ~(lane_mask<Lane> << shift)) | (value & lane_mask<Lane>) << shift;
}

template <class Lane> constexpr uint32_t splat(uint32_t value) { return (value & lane_mask<Lane>)*ones<Lane>; }

// The lanes of `a` and `b`, each pair put together by `combine`.
template <class Lane, class Combine> constexpr uint32_t each(uint32_t a, uint32_t b, Combine combine) {
    uint32_t result = 0;
    for (unsigned i = 0; i < lanes<Lane>; ++i)
        result |=
            (static_cast<uint32_t>(combine(lane<Lane>(a, i), lane<Lane>(b, i))) & lane_mask<Lane>) << (i *
                                                                                                       lane_bits<Lane>);
    return result;
}

// Without the highest bits no carry leaves a lane; they are added without one.
template <class Lane> constexpr uint32_t add(uint32_t a, uint32_t b) {
    constexpr uint32_t high = high_bits<Lane>;
    return ((a & ~high) + (b & ~high)) ^ ((a ^ b) & high);
}
template <class Lane> constexpr uint32_t sub(uint32_t a, uint32_t b) {
    constexpr uint32_t high = high_bits<Lane>;
    return ((a | high) - (b & ~high)) ^ ((a ^ ~b) & high);
}

template <class Lane> constexpr uint32_t shift_right(uint32_t a, uint32_t amounts) {
    return each<Lane>(a, amounts, [](int32_t value, int32_t by) { return value >> (by & shift_mask<Lane>); });
}
template <class Lane> constexpr uint32_t shift_left(uint32_t a, uint32_t amounts) {
    return each<Lane>(a, amounts, [](int32_t value, int32_t by) { return value << (by & shift_mask<Lane>); });
}
// The sum wraps before it is halved.
template <class Lane> constexpr uint32_t average(uint32_t a, uint32_t b) {
    return each<Lane>(add<Lane>(a, b), 0, [](int32_t sum, int32_t) { return sum >> 1; });
}
template <class Lane> constexpr uint32_t min(uint32_t a, uint32_t b) {
    return each<Lane>(a, b, [](int32_t x, int32_t y) { return x < y ? x : y; });
}
template <class Lane> constexpr uint32_t max(uint32_t a, uint32_t b) {
    return each<Lane>(a, b, [](int32_t x, int32_t y) { return x > y ? x : y; });
}
template <class Lane> constexpr uint32_t absolute(uint32_t a) {
    return each<Lane>(a, 0, [](int32_t x, int32_t) { return x < 0 ? -x : x; });
}
constexpr uint32_t absolute(uint32_t a) { return static_cast<int32_t>(a) < 0 ? 0 - a : a; }

// Comparisons give all ones where they hold.
template <class Lane> constexpr uint32_t equal(uint32_t a, uint32_t b) {
    return each<Lane>(a, b, [](int32_t x, int32_t y) { return -(x == y); });
}
template <class Lane> constexpr uint32_t not_equal(uint32_t a, uint32_t b) { return ~equal<Lane>(a, b); }
template <class Lane> constexpr uint32_t less(uint32_t a, uint32_t b) {
    return each<Lane>(a, b, [](int32_t x, int32_t y) { return -(x < y); });
}
template <class Lane> constexpr uint32_t greater(uint32_t a, uint32_t b) { return less<Lane>(b, a); }
template <class Lane> constexpr uint32_t greater_equal(uint32_t a, uint32_t b) { return ~less<Lane>(a, b); }
template <class Lane> constexpr uint32_t less_equal(uint32_t a, uint32_t b) { return ~less<Lane>(b, a); }

// Products of lanes are taken without sign, so that they wrap; their low bits are the same.
template <class Lane, uint32_t Index> constexpr uint32_t product(uint32_t a, uint32_t b) {
    return static_cast<uint32_t>(lane<Lane>(a, Index)) * static_cast<uint32_t>(lane<Lane>(b, Index));
}
template <class LaneA, class LaneB> constexpr uint32_t dot(uint32_t a, uint32_t b) {
    const auto part = [a, b](uint32_t i) {
        return static_cast<uint32_t>(lane<LaneA>(a, i)) * static_cast<uint32_t>(lane<LaneB>(b, i));
    };
    if constexpr (lanes<LaneA> == 4)
        return part(0) + part(1) + part(2) + part(3);
    else
        return part(0) + part(1);
}

// Lane numbers that are packed without gaps, each moved to the lane it is for.
template <class Lane> constexpr uint32_t spread(uint32_t packed) {
    constexpr unsigned bits = lanes<Lane> / 2;
    uint32_t result = 0;
    for (unsigned i = 0; i < lanes<Lane>; ++i)
        result |= (packed >> (i * bits) & (lanes<Lane> - 1)) << (i * lane_bits<Lane>);
    return result;
}
template <class Lane> constexpr uint32_t shuffle(uint32_t a, uint32_t numbers) {
    return each<std::make_unsigned_t<Lane>>(
        numbers, 0, [a](int32_t number, int32_t) { return lane<Lane>(a, static_cast<uint32_t>(number)); });
}
// Numbers count through the lanes of both words.
template <class Lane> constexpr uint32_t shuffle(uint32_t low, uint32_t high, uint32_t numbers) {
    return each<std::make_unsigned_t<Lane>>(numbers, 0, [low, high](int32_t number, int32_t) {
        const auto index = static_cast<uint32_t>(number);
        return lane<Lane>((index & lanes<Lane>) != 0 ? high : low, index);
    });
}

// Halfwords are complex numbers: the low one real, the high one imaginary.
constexpr uint32_t complex_real(uint32_t a, uint32_t b) {
    return product<int16_t, 0>(a, b) - product<int16_t, 1>(a, b);
}
constexpr uint32_t complex_imaginary(uint32_t a, uint32_t b) { return dot<int16_t, int16_t>(a, std::rotl(b, 16)); }
// The difference, turned by a quarter clockwise and divided by a power of two.
constexpr uint32_t subtract_rotate(uint32_t a, uint32_t b, uint32_t shift) {
    const uint32_t difference = sub<uint16_t>(a, b);
    const uint32_t turned = difference >> 16 | (0 - (difference & 0xffff)) << 16;
    return shift_right<int16_t>(turned, splat<uint16_t>(shift));
}
constexpr uint32_t conjugate(uint32_t a) { return with_lane<uint16_t>(a, 1, 0 - (a >> 16)); }

// What is added to a sum before it is shifted, so that halves are rounded up.
constexpr uint32_t rounding(uint32_t shift) { return (1u << shift) >> 1; }

constexpr uint32_t shift_signed(uint32_t value, uint32_t amount) {
    return static_cast<uint32_t>(static_cast<int32_t>(value) >> amount);
}

constexpr uint32_t last_one(uint32_t a) { return a == 0 ? 32 : static_cast<uint32_t>(31 - std::countl_zero(a)); }

// Bits behind the sign bit that are the same as it.
constexpr uint32_t leading_sign_bits(uint32_t a) {
    const uint32_t changes = a ^ static_cast<uint32_t>(static_cast<int32_t>(a) >> 31);
    return a == 0 ? 0 : static_cast<uint32_t>(std::countl_zero(changes) - 1);
}

// A field of bits: its width less one, and its lowest bit. Bits beyond the word are cut off.
struct BitField {
    uint32_t width_less_one;
    uint32_t position;
};
constexpr BitField bit_field(uint32_t word) { return {word >> 5 & 31, word & 31}; }
constexpr uint32_t mask(BitField field) { return ((2u << field.width_less_one) - 1) << field.position; }
constexpr uint32_t insert(uint32_t word, uint32_t value, BitField field) {
    return (word & ~mask(field)) | (value << field.position & mask(field));
}
constexpr uint32_t bits_above(BitField field) {
    const uint32_t top = field.width_less_one + field.position;
    return top > 31 ? 0 : 31 - top;
}
constexpr int32_t extract(uint32_t word, BitField field) {
    return static_cast<int32_t>(word << bits_above(field)) >> (bits_above(field) + field.position);
}
constexpr uint32_t extract_unsigned(uint32_t word, BitField field) {
    return word << bits_above(field) >> (bits_above(field) + field.position);
}

// The upper bound of a number of so many bits, with its sign.
constexpr uint32_t upper_bound(uint32_t bits) { return rounding(bits) - (bits != 0); }
// The lower bound wins over an upper one below it.
constexpr uint32_t clip(uint32_t value, uint32_t upper) {
    const auto number = static_cast<int32_t>(value), low = static_cast<int32_t>(~upper);
    const auto high = static_cast<int32_t>(upper);
    return static_cast<uint32_t>(number < low ? low : number > high ? high : number);
}
// The upper bound wins over zero, where it is negative.
constexpr uint32_t clip_unsigned(uint32_t value, uint32_t upper) {
    const auto number = static_cast<int32_t>(value), high = static_cast<int32_t>(upper);
    return static_cast<uint32_t>(number > high ? high : number < 0 ? 0 : number);
}

// The lowest `bits` bits as digits of `digit` bits each, in the opposite order: where a Fourier transform of so many
// points leaves a sample.
constexpr uint32_t reversed_digits(uint32_t value, uint32_t bits, uint32_t digit) {
    uint32_t result = 0;
    for (uint32_t from = 0; from < bits; from += digit)
        for (uint32_t i = 0; i < digit && from + i < 32; ++i) {
            const uint32_t source = bits - from - digit + i; // wraps where the last digit is cut off
            result |= (source < bits ? value >> source & 1 : 0) << (from + i);
        }
    return result;
}

} // namespace tilewright::pulp
