#include "isa/float_ops.h"

#include "isa/op.h"

#include <array>
#include <string_view>

namespace tilewright {

namespace {

using namespace float_ops;

constexpr FloatRow described(std::string_view operands, Timing timing, uint64_t (*compute)(FloatCall &),
                             FloatResult (*compute_usual)(uint64_t, uint64_t, uint64_t, uint32_t)) {
    FloatRow row{compute};
    row.compute_usual = compute_usual;
    row.reads_a = operands.find('S') != std::string_view::npos;
    row.reads_b = operands.find('T') != std::string_view::npos;
    row.reads_c = operands.find('R') != std::string_view::npos;
    row.reads_d = operands.find("D+") != std::string_view::npos;
    row.integer_operand = operands.find('s') != std::string_view::npos;
    row.integer_result = operands.starts_with('d');
    row.rounds = operands.ends_with('m');
    row.divides = timing == Timing::fp_divide || timing == Timing::fp_sqrt;
    return row;
}

std::array<FloatRow, op_count> all_rows() {
    std::array<FloatRow, op_count> rows{};
#define INSN(...)
#define FLOAT(id, name, match, mask, operands, timing, ...)                                                            \
    rows[op_##id] = described(                                                                                         \
        operands, Timing::timing, [](FloatCall &in) -> uint64_t { return __VA_ARGS__; },                               \
        [](uint64_t a, uint64_t b, uint64_t c, uint32_t flags) __attribute__((flatten)) -> FloatResult {               \
            FloatCall in{a, b, c, 0, {rounding_mode::nearest_even, flags}};                                            \
            const uint64_t value = __VA_ARGS__;                                                                        \
            return {value, in.state.flags, in.unboxed};                                                                \
        });
#include "isa/xfloat.inc"
#undef FLOAT
#undef INSN
    return rows;
}

const std::array<FloatRow, op_count> float_rows = all_rows();

} // namespace

const FloatRow &float_row(uint16_t code) { return float_rows[code]; }

} // namespace tilewright
