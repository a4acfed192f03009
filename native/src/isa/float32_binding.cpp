// The floating-point arithmetic for Python, where the tests compare it with exact rational numbers.
#include "isa/float32_binding.h"

#include <array>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "isa/float32.h"

namespace tilewright {

namespace {

namespace nb = nanobind;

using Operands = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Results = nb::ndarray<nb::numpy, uint32_t, nb::ndim<1>>;
using Operation = uint32_t (*)(uint32_t a, uint32_t b, uint32_t c, FloatState &state);

struct NamedOperation {
    std::string_view name;
    Operation apply;
};

constexpr std::array operations{
    NamedOperation{"add", [](uint32_t a, uint32_t b, uint32_t, FloatState &s) { return f32_add(a, b, s); }},
    NamedOperation{"sub", [](uint32_t a, uint32_t b, uint32_t, FloatState &s) { return f32_sub(a, b, s); }},
    NamedOperation{"mul", [](uint32_t a, uint32_t b, uint32_t, FloatState &s) { return f32_mul(a, b, s); }},
    NamedOperation{"div", [](uint32_t a, uint32_t b, uint32_t, FloatState &s) { return f32_div(a, b, s); }},
    NamedOperation{"sqrt", [](uint32_t a, uint32_t, uint32_t, FloatState &s) { return f32_sqrt(a, s); }},
    NamedOperation{"fmadd", [](uint32_t a, uint32_t b, uint32_t c, FloatState &s) { return f32_fmadd(a, b, c, s); }},
    NamedOperation{"fmsub", [](uint32_t a, uint32_t b, uint32_t c, FloatState &s) { return f32_fmsub(a, b, c, s); }},
    NamedOperation{"fnmsub", [](uint32_t a, uint32_t b, uint32_t c, FloatState &s) { return f32_fnmsub(a, b, c, s); }},
    NamedOperation{"fnmadd", [](uint32_t a, uint32_t b, uint32_t c, FloatState &s) { return f32_fnmadd(a, b, c, s); }},
    NamedOperation{"min", [](uint32_t a, uint32_t b, uint32_t, FloatState &s) { return f32_min(a, b, s); }},
    NamedOperation{"max", [](uint32_t a, uint32_t b, uint32_t, FloatState &s) { return f32_max(a, b, s); }},
    NamedOperation{"eq", [](uint32_t a, uint32_t b, uint32_t, FloatState &s) { return f32_eq(a, b, s); }},
    NamedOperation{"lt", [](uint32_t a, uint32_t b, uint32_t, FloatState &s) { return f32_lt(a, b, s); }},
    NamedOperation{"le", [](uint32_t a, uint32_t b, uint32_t, FloatState &s) { return f32_le(a, b, s); }},
    NamedOperation{"classify", [](uint32_t a, uint32_t, uint32_t, FloatState &) { return f32_classify(a); }},
    NamedOperation{"sgnj", [](uint32_t a, uint32_t b, uint32_t, FloatState &) { return f32_sgnj(a, b); }},
    NamedOperation{"sgnjn", [](uint32_t a, uint32_t b, uint32_t, FloatState &) { return f32_sgnjn(a, b); }},
    NamedOperation{"sgnjx", [](uint32_t a, uint32_t b, uint32_t, FloatState &) { return f32_sgnjx(a, b); }},
    NamedOperation{"to_i32", [](uint32_t a, uint32_t, uint32_t,
                                FloatState &s) { return static_cast<uint32_t>(f32_to_i32(a, s)); }},
    NamedOperation{"to_u32", [](uint32_t a, uint32_t, uint32_t, FloatState &s) { return f32_to_u32(a, s); }},
    NamedOperation{"from_i32", [](uint32_t a, uint32_t, uint32_t,
                                  FloatState &s) { return f32_from_i32(static_cast<int32_t>(a), s); }},
    NamedOperation{"from_u32", [](uint32_t a, uint32_t, uint32_t, FloatState &s) { return f32_from_u32(a, s); }},
};

Operation operation_named(std::string_view name) {
    for (const NamedOperation &operation : operations) {
        if (operation.name == name) {
            return operation.apply;
        }
    }
    throw std::invalid_argument("no such operation: " + std::string(name));
}

Results owned_by_python(std::unique_ptr<uint32_t[]> values, size_t count) {
    uint32_t *data = values.get();
    const nb::capsule owner(data, [](void *pointer) noexcept { delete[] static_cast<uint32_t *>(pointer); });
    values.release();
    return Results(data, {count}, owner);
}

std::pair<Results, Results> float32_op(const std::string &name, const Operands &a, const Operands &b, const Operands &c,
                                       uint32_t rounding, uint32_t flags_in) {
    const size_t count = a.size();
    if (b.size() != count || c.size() != count) {
        throw std::invalid_argument("operands of different lengths");
    }
    if (rounding > rounding_mode::nearest_away) {
        throw std::invalid_argument("no such rounding mode: " + std::to_string(rounding));
    }
    const Operation apply = operation_named(name);
    auto results = std::make_unique<uint32_t[]>(count);
    auto flags = std::make_unique<uint32_t[]>(count);
    for (size_t i = 0; i < count; ++i) {
        FloatState state{rounding, flags_in};
        results[i] = apply(a.data()[i], b.data()[i], c.data()[i], state);
        flags[i] = state.flags;
    }
    return {owned_by_python(std::move(results), count), owned_by_python(std::move(flags), count)};
}

} // namespace

void bind_float32(nb::module_ &module) {
    module.def("float32_op", &float32_op, nb::arg("name"), nb::arg("a"), nb::arg("b"), nb::arg("c"),
               nb::arg("rounding"), nb::arg("flags_in"),
               "Applies an operation to each triple of bit patterns; returns the results and each one's flags.");
}

} // namespace tilewright
