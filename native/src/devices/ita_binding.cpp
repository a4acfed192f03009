// Python's view of ITA: cycles of many parts of layers for predictions, single jobs and its arithmetic for tests.
#include "devices/ita_binding.h"

#include <map>
#include <memory>
#include <stdexcept>

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "devices/ita.h"
#include "devices/ita_units.h"

namespace nb = nanobind;

namespace tilewright {

namespace {

using Bytes = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Numbers = std::map<std::string, int64_t>;
using Sizes = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Cycles = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;

ItaTiming timing_of(const Numbers &numbers) {
    ItaTiming timing;
    for (const std::string_view name : ItaTiming::names) {
        const auto found = numbers.find(std::string(name));
        if (found == numbers.end())
            throw std::invalid_argument("a timing is missing: " + std::string(name));
        timing.set(name, found->second);
    }
    return timing;
}

// An engine with a memory, without the device around it.
class Engine {
  public:
    Engine(const Bytes &memory, const Numbers &timing)
        : memory_(memory), timing_(timing_of(timing)), engine_({memory.data(), memory.size()}) {}

    // The job's cycles; an error about one that cannot run.
    int64_t run(const std::vector<uint32_t> &registers) {
        ItaRegisters values;
        if (registers.size() != values.size())
            throw std::invalid_argument("a job has " + std::to_string(values.size()) + " registers");
        std::copy(registers.begin(), registers.end(), values.begin());
        const ItaJob job = decode_ita_job(values);
        if (const auto fault = engine_.accept(job))
            throw std::invalid_argument(fault->description);
        engine_.run(job);
        return ita_cycles(job, timing_);
    }

    // Of each row of the softmax: maximum, sum and inverse.
    std::vector<std::tuple<int32_t, uint32_t, uint32_t>> rows() const {
        std::vector<std::tuple<int32_t, uint32_t, uint32_t>> found;
        for (const ItaRow &row : engine_.rows())
            found.emplace_back(row.top, row.sum, row.inverse());
        return found;
    }

  private:
    Bytes memory_;
    ItaTiming timing_;
    ItaEngine engine_;
};

// A number for each of many jobs.
template <class Number>
Cycles of_each(size_t count, std::initializer_list<const Sizes *> others, const Number &number) {
    for (const Sizes *each : others)
        if (each->size() != count)
            throw std::invalid_argument("sizes of different lengths");
    auto found = std::make_unique<int64_t[]>(count);
    for (size_t i = 0; i < count; ++i)
        found[i] = number(i);
    int64_t *data = found.release();
    const nb::capsule owner(data, [](void *pointer) noexcept { delete[] static_cast<int64_t *>(pointer); });
    return Cycles(data, {count}, owner);
}

// Cycles in which each of many parts of layers keeps the engine busy; sizes are those of matrices.
Cycles busy(const std::string &mode, const Numbers &settings, const Sizes &rows, const Sizes &columns,
            const Sizes &inner, const Sizes &bias, const Sizes &output) {
    if (mode != "linear" && mode != "attention")
        throw std::invalid_argument("no mode is named " + mode);
    const ItaTiming timing = timing_of(settings);
    return of_each(rows.size(), {&columns, &inner, &bias, &output}, [&](size_t i) {
        const auto tiles = [i](const Sizes &sizes) { return (sizes.data()[i] + ita_tile - 1) / ita_tile; };
        return mode == "linear" ? ita_linear_cycles(tiles(rows), tiles(columns), tiles(inner), bias.data()[i] != 0,
                                                    output.data()[i] != 0, timing)
                                : ita_attention_cycles(tiles(rows), tiles(columns), tiles(inner), timing);
    });
}

// Cycles of the products of heads, each on a unit.
Cycles units_busy(const std::string &mode, const Numbers &settings, const Sizes &rows, const Sizes &embedding,
                  const Sizes &projection) {
    const auto cycles = settings.find("product_cycles");
    if (mode != "head" || cycles == settings.end())
        throw std::invalid_argument("jobs are heads, and need product_cycles");
    return of_each(rows.size(), {&embedding, &projection}, [&](size_t i) {
        const auto size = [i](const Sizes &sizes) { return static_cast<uint32_t>(sizes.data()[i]); };
        return cycles->second * ItaHead{size(rows), size(embedding), size(projection), {}, {}, {}}.products();
    });
}

int requantise(int64_t sum, uint32_t mult, uint32_t shift, int32_t add) {
    return ita_requantise(sum, {mult, shift, add});
}

int activate(int value, int kind, int32_t b, int32_t c, uint32_t mult, uint32_t shift, int32_t add) {
    return ita_activate(static_cast<int8_t>(value), {static_cast<ItaActivation>(kind), b, c, {mult, shift, add}});
}

std::vector<int> softmax(const std::vector<int> &scores) {
    const std::vector<int8_t> bytes(scores.begin(), scores.end());
    if (bytes.size() % ita_group != 0)
        throw std::invalid_argument("a row has groups of 16");
    ItaRow row;
    for (size_t i = 0; i < bytes.size(); i += ita_group)
        row.take(bytes.data() + i);
    std::vector<int> found;
    for (const int8_t score : bytes)
        found.push_back(row.weight(score, row.inverse()));
    return found;
}

} // namespace

void bind_ita(nb::module_ &module) {
    nb::class_<Engine>(module, "ItaEngine")
        .def(nb::init<const Bytes &, const Numbers &>(), nb::arg("memory"), nb::arg("timing"))
        .def("run", &Engine::run, nb::arg("registers"))
        .def("rows", &Engine::rows);
    module.def("ita_busy", &busy, nb::arg("mode"), nb::arg("settings"), nb::arg("rows"), nb::arg("columns"),
               nb::arg("inner"), nb::arg("bias"), nb::arg("output"));
    module.def("ita_units_busy", &units_busy, nb::arg("mode"), nb::arg("settings"), nb::arg("rows"),
               nb::arg("embedding"), nb::arg("projection"));
    module.def("ita_requantise", &requantise, nb::arg("sum"), nb::arg("mult"), nb::arg("shift"), nb::arg("add"));
    module.def("ita_activate", &activate, nb::arg("value"), nb::arg("kind"), nb::arg("b"), nb::arg("c"),
               nb::arg("mult"), nb::arg("shift"), nb::arg("add"));
    module.def("ita_softmax", &softmax, nb::arg("scores"));
}

} // namespace tilewright
