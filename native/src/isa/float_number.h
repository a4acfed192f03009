// Finite numbers of any format, and exact sums of them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tilewright {

using Wide = unsigned __int128;
constexpr int wide_bits = 128;

inline int leading_zeros(Wide value) {
    const auto high = static_cast<uint64_t>(value >> 64);
    return high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(static_cast<uint64_t>(value));
}

// significand * 2^exponent. A significand that lost bits has its lowest bit set instead, far below all rounding.
struct Number {
    bool negative;
    int exponent;
    Wide significand;
};

// Exact fixed-point sums of a few terms: enough bits for products of bfloat16 beside any single.
class Sum {
  public:
    void add(const Number &term) {
        if (term.significand == 0)
            return;
        const int at = term.exponent - lowest;
        std::array<uint64_t, words> shifted{};
        const int word = at / 64, bit = at % 64;
        const Wide low = term.significand << bit;
        shifted[static_cast<size_t>(word)] = static_cast<uint64_t>(low);
        shifted[static_cast<size_t>(word) + 1] = static_cast<uint64_t>(low >> 64);
        if (bit != 0)
            shifted[static_cast<size_t>(word) + 2] = static_cast<uint64_t>(term.significand >> (wide_bits - bit));
        uint64_t carry = term.negative ? 1 : 0;
        for (size_t i = 0; i < words; ++i) {
            const Wide sum = Wide{bits_[i]} + (term.negative ? ~shifted[i] : shifted[i]) + carry;
            bits_[i] = static_cast<uint64_t>(sum);
            carry = static_cast<uint64_t>(sum >> 64);
        }
    }
    // What is in it, with bits that do not fit into the significand in its lowest one; zero has none.
    Number value() const {
        std::array<uint64_t, words> magnitude = bits_;
        const bool negative = (bits_[words - 1] >> 63) != 0;
        if (negative) {
            uint64_t carry = 1;
            for (uint64_t &part : magnitude) {
                const Wide sum = Wide{~part} + carry;
                part = static_cast<uint64_t>(sum);
                carry = static_cast<uint64_t>(sum >> 64);
            }
        }
        size_t top = words;
        while (top > 0 && magnitude[top - 1] == 0)
            --top;
        if (top == 0)
            return {false, 0, 0};
        if (top == 1)
            return {negative, lowest, magnitude[0]};
        Wide significand = Wide{magnitude[top - 1]} << 64 | magnitude[top - 2];
        bool rest = false;
        for (size_t i = 0; i + 2 < top; ++i)
            rest |= magnitude[i] != 0;
        // The lowest bits of the second word may round: keep them apart from what is below.
        if (rest)
            significand |= 1;
        return {negative, lowest + static_cast<int>(top - 2) * 64, significand};
    }

  private:
    static constexpr size_t words = 12;
    static constexpr int lowest = -300;
    std::array<uint64_t, words> bits_{};
};

} // namespace tilewright
