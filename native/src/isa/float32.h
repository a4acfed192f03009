// IEEE-754 binary32 arithmetic as RISC-V (the F extension) defines it, on raw bit patterns.
//
// Every NaN result is the canonical one, subnormals are kept, underflow is detected after rounding, and exceptions only
// accrue in `FloatState::flags`. The arithmetic itself is exact integer arithmetic in `float32_exact`. Most operations
// never get there: where the host's FPU provably gives the same result and the same flags, the functions below use it.
//
// The host is asked only if the rounding is to nearest-even (the host's own mode) and no operand is subnormal (a host
// that flushes subnormals must not matter). Its result is taken only if it is above the smallest normal number and
// finite: then no operand was infinite or NaN, and neither overflow nor underflow happened (a tiny value may still
// round up to the smallest normal number, so that one is left to the exact way). What remains is whether the result is
// exact, which each function finds out itself, unless the inexact flag is set already.
//
// Build with -ffp-contract=off: the compiler must not fuse a product with a sum that follows it (g++ does so by default
// and has no pragma against it).
#pragma once

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>

#ifdef __FAST_MATH__
#error "float32 needs strict IEEE-754 semantics: build without -ffast-math"
#endif

namespace tilewright {

// FLT_EVAL_METHOD 16 widens half precision only.
static_assert(FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 16, "float32 needs a host that computes floats as floats");

// As encoded in `frm` and in the rm field of instructions; a dynamic or reserved mode is the caller's to resolve.
namespace rounding_mode {
inline constexpr uint32_t nearest_even = 0;
inline constexpr uint32_t toward_zero = 1;
inline constexpr uint32_t down = 2;
inline constexpr uint32_t up = 3;
inline constexpr uint32_t nearest_away = 4;
} // namespace rounding_mode

// As encoded in `fflags`.
namespace float_flag {
inline constexpr uint32_t inexact = 1;
inline constexpr uint32_t underflow = 2;
inline constexpr uint32_t overflow = 4;
inline constexpr uint32_t divide_by_zero = 8;
inline constexpr uint32_t invalid = 16;
} // namespace float_flag

struct FloatState {
    uint32_t rounding;
    uint32_t flags;
};

namespace float32_bits {
inline constexpr uint32_t sign = 0x80000000;
inline constexpr uint32_t magnitude = 0x7fffffff;
inline constexpr uint32_t infinity = 0x7f800000;
inline constexpr uint32_t quiet = 0x00400000;
inline constexpr uint32_t canonical_nan = 0x7fc00000;
inline constexpr uint32_t largest_finite = 0x7f7fffff;
inline constexpr uint32_t smallest_normal = 0x00800000;

constexpr bool is_nan(uint32_t a) { return (a & magnitude) > infinity; }
constexpr bool is_signalling(uint32_t a) { return is_nan(a) && (a & quiet) == 0; }
constexpr bool is_infinite(uint32_t a) { return (a & magnitude) == infinity; }
constexpr bool is_zero(uint32_t a) { return (a & magnitude) == 0; }
} // namespace float32_bits

// The slow way, right for all operands and rounding modes.
namespace float32_exact {
uint32_t add(uint32_t a, uint32_t b, FloatState &state);
uint32_t multiply(uint32_t a, uint32_t b, FloatState &state);
uint32_t divide(uint32_t a, uint32_t b, FloatState &state);
uint32_t square_root(uint32_t a, FloatState &state);
uint32_t multiply_add(uint32_t a, uint32_t b, uint32_t c, FloatState &state);
} // namespace float32_exact

namespace float32_host {

inline float number(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t bits(float number) { return std::bit_cast<uint32_t>(number); }

inline bool takes(const FloatState &state) { return state.rounding == rounding_mode::nearest_even; }

// Zero wraps around, so one comparison covers "zero or not subnormal".
inline bool takes(uint32_t operand) {
    return (operand & float32_bits::magnitude) - 1 >= float32_bits::smallest_normal - 1;
}

inline bool is_plain(uint32_t result) {
    return (result & float32_bits::magnitude) - (float32_bits::smallest_normal + 1) <
           float32_bits::infinity - (float32_bits::smallest_normal + 1);
}

inline bool knows_inexact(const FloatState &state) { return (state.flags & float_flag::inexact) != 0; }

// The error of a rounded sum, which is a double itself.
inline double sum_error(double a, double b, double sum) {
    const double b_in_sum = sum - a;
    const double a_in_sum = sum - b_in_sum;
    return (a - a_in_sum) + (b - b_in_sum);
}

inline void note_inexact(bool inexact, FloatState &state) { state.flags |= inexact ? float_flag::inexact : 0; }

} // namespace float32_host

inline uint32_t f32_add(uint32_t a, uint32_t b, FloatState &state) {
    namespace host = float32_host;
    if (host::takes(state) && host::takes(a) && host::takes(b)) {
        const float x = host::number(a);
        const float y = host::number(b);
        const float sum = x + y;
        if (host::is_plain(host::bits(sum))) {
            if (!host::knows_inexact(state)) {
                // The difference to the larger operand has no rounding error, so it tells; an exact sum passes both.
                const float rest_of_x = sum - x;
                const float rest_of_y = sum - y;
                host::note_inexact(rest_of_x != y || rest_of_y != x, state);
            }
            return host::bits(sum);
        }
    }
    return float32_exact::add(a, b, state);
}

inline uint32_t f32_sub(uint32_t a, uint32_t b, FloatState &state) { return f32_add(a, b ^ float32_bits::sign, state); }

inline uint32_t f32_mul(uint32_t a, uint32_t b, FloatState &state) {
    namespace host = float32_host;
    if (host::takes(state) && host::takes(a) && host::takes(b)) {
        const float product = host::number(a) * host::number(b);
        if (host::is_plain(host::bits(product))) {
            if (!host::knows_inexact(state)) {
                const double exact = static_cast<double>(host::number(a)) * static_cast<double>(host::number(b));
                host::note_inexact(static_cast<double>(product) != exact, state);
            }
            return host::bits(product);
        }
    }
    return float32_exact::multiply(a, b, state);
}

inline uint32_t f32_div(uint32_t a, uint32_t b, FloatState &state) {
    namespace host = float32_host;
    if (host::takes(state) && host::takes(a) && host::takes(b)) {
        const float quotient = host::number(a) / host::number(b);
        if (host::is_plain(host::bits(quotient))) {
            if (!host::knows_inexact(state)) {
                const double back = static_cast<double>(quotient) * static_cast<double>(host::number(b));
                host::note_inexact(back != static_cast<double>(host::number(a)), state);
            }
            return host::bits(quotient);
        }
    }
    return float32_exact::divide(a, b, state);
}

inline uint32_t f32_sqrt(uint32_t a, FloatState &state) {
    namespace host = float32_host;
    // A negative operand stays away: its root would be NaN anyway, and the C library may be called for it.
    if (host::takes(state) && host::takes(a) && (a & float32_bits::sign) == 0) {
        const float root = std::sqrt(host::number(a));
        if (host::is_plain(host::bits(root))) {
            if (!host::knows_inexact(state)) {
                const double back = static_cast<double>(root) * static_cast<double>(root);
                host::note_inexact(back != static_cast<double>(host::number(a)), state);
            }
            return host::bits(root);
        }
    }
    return float32_exact::square_root(a, state);
}

// a * b + c with one rounding.
inline uint32_t f32_fmadd(uint32_t a, uint32_t b, uint32_t c, FloatState &state) {
    namespace host = float32_host;
    if (host::takes(state) && host::takes(a) && host::takes(b) && host::takes(c)) {
        const double product = static_cast<double>(host::number(a)) * static_cast<double>(host::number(b));
        const double addend = static_cast<double>(host::number(c));
        const double sum = product + addend;
        // The product is exact. The sum is rounded before the result is, which matters only half-way between two floats.
        constexpr uint64_t below_float = (uint64_t{1} << 29) - 1, half_way = uint64_t{1} << 28;
        float result = static_cast<float>(sum);
        if ((std::bit_cast<uint64_t>(sum) & below_float) == half_way) [[unlikely]]
            result = std::fma(host::number(a), host::number(b), host::number(c));
        if (host::is_plain(host::bits(result))) {
            if (!host::knows_inexact(state))
                host::note_inexact(host::sum_error(product, addend, sum) != 0 || sum != static_cast<double>(result),
                                   state);
            return host::bits(result);
        }
    }
    return float32_exact::multiply_add(a, b, c, state);
}

inline uint32_t f32_fmsub(uint32_t a, uint32_t b, uint32_t c, FloatState &state) {
    return f32_fmadd(a, b, c ^ float32_bits::sign, state);
}

inline uint32_t f32_fnmsub(uint32_t a, uint32_t b, uint32_t c, FloatState &state) {
    return f32_fmadd(a ^ float32_bits::sign, b, c, state);
}

inline uint32_t f32_fnmadd(uint32_t a, uint32_t b, uint32_t c, FloatState &state) {
    return f32_fmadd(a ^ float32_bits::sign, b, c ^ float32_bits::sign, state);
}

// The minimumNumber and maximumNumber of IEEE-754-2019: a NaN loses to a number, and -0 is below +0.
uint32_t f32_min(uint32_t a, uint32_t b, FloatState &state);
uint32_t f32_max(uint32_t a, uint32_t b, FloatState &state);

// Comparisons give 0 or 1. Any NaN is invalid in `lt` and `le`, only a signalling one in `eq`.
uint32_t f32_eq(uint32_t a, uint32_t b, FloatState &state);
uint32_t f32_lt(uint32_t a, uint32_t b, FloatState &state);
uint32_t f32_le(uint32_t a, uint32_t b, FloatState &state);

// The one-hot mask of fclass.s.
uint32_t f32_classify(uint32_t a);

inline uint32_t f32_sgnj(uint32_t a, uint32_t b) { return (a & float32_bits::magnitude) | (b & float32_bits::sign); }
inline uint32_t f32_sgnjn(uint32_t a, uint32_t b) { return (a & float32_bits::magnitude) | (~b & float32_bits::sign); }
inline uint32_t f32_sgnjx(uint32_t a, uint32_t b) { return a ^ (b & float32_bits::sign); }

// Out of range (a NaN counts as too large): the nearest integer, and invalid as the only flag.
int32_t f32_to_i32(uint32_t a, FloatState &state);
uint32_t f32_to_u32(uint32_t a, FloatState &state);
uint32_t f32_from_i32(int32_t value, FloatState &state);
uint32_t f32_from_u32(uint32_t value, FloatState &state);

} // namespace tilewright
