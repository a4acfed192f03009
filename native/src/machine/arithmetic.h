// Integer arithmetic of instructions whose C++ operators are not defined for all operands.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace tilewright {

inline uint32_t high_product(int32_t a, int32_t b) { return static_cast<uint32_t>((int64_t{a} * b) >> 32); }
inline uint32_t high_product(int32_t a, uint32_t b) { return static_cast<uint32_t>((int64_t{a} * int64_t{b}) >> 32); }
inline uint32_t high_product(uint32_t a, uint32_t b) { return static_cast<uint32_t>((uint64_t{a} * b) >> 32); }

inline bool overflows(int32_t a, int32_t b) { return a == std::numeric_limits<int32_t>::min() && b == -1; }

inline uint32_t quotient(int32_t a, int32_t b) {
    return b == 0 ? ~0u : static_cast<uint32_t>(overflows(a, b) ? a : a / b);
}
inline uint32_t quotient(uint32_t a, uint32_t b) { return b == 0 ? ~0u : a / b; }
inline uint32_t remainder(int32_t a, int32_t b) {
    return static_cast<uint32_t>(b == 0 ? a : overflows(a, b) ? 0 : a % b);
}
inline uint32_t remainder(uint32_t a, uint32_t b) { return b == 0 ? a : a % b; }

} // namespace tilewright
