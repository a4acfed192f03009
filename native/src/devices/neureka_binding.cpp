// Python's view of NEUREKA's jobs: cycles of many for predictions, single ones for tests and calibration.
#include "devices/neureka_binding.h"

#include <map>
#include <memory>
#include <stdexcept>

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "devices/neureka.h"

namespace nb = nanobind;

namespace tilewright {

namespace {

using Bytes = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Numbers = std::map<std::string, int64_t>;
using Range = std::tuple<std::string, bool, bool, uint32_t, uint32_t>;

struct Result {
    std::optional<std::string> fault;
    int64_t cycles = 0;
    int64_t hidden = 0;
    int64_t multiplications = 0;
    double peak_multiplications_per_cycle = 0;
    Numbers phase_cycles;
    Numbers phase_bytes;
};

NeurekaJob decode(const std::vector<uint32_t> &registers) {
    NeurekaRegisters values;
    if (registers.size() != values.size())
        throw std::invalid_argument("a job has " + std::to_string(values.size()) + " registers");
    std::copy(registers.begin(), registers.end(), values.begin());
    return decode_neureka_job(values);
}

NeurekaTiming timing_of(const Numbers &numbers) {
    NeurekaTiming timing;
    for (const std::string_view name : NeurekaTiming::names()) {
        const auto found = numbers.find(std::string(name));
        if (found == numbers.end())
            throw std::invalid_argument("a timing is missing: " + std::string(name));
        timing.set(name, found->second);
    }
    return timing;
}

NeurekaMemory memory_of(const Bytes &tcdm, const Bytes &weights, uint32_t base, uint32_t mask) {
    return {{tcdm.data(), tcdm.size()}, mask, base, {weights.data(), weights.size()}};
}

NeurekaQuirks quirks_of(bool gvsoc) { return gvsoc ? NeurekaQuirks::gvsoc() : NeurekaQuirks{}; }

Result run(const std::vector<uint32_t> &registers, const Bytes &tcdm, const Bytes &weights, uint32_t base,
           uint32_t mask, const Numbers &timing, bool gvsoc, int64_t hidden) {
    const NeurekaJob job = decode(registers);
    const NeurekaQuirks quirks = quirks_of(gvsoc);
    const NeurekaTiming cycles = timing_of(timing);
    Result result;
    result.hidden = hidden;
    if (const auto fault = run_neureka(job, memory_of(tcdm, weights, base, mask), quirks)) {
        result.fault = fault->description;
        return result;
    }
    NeurekaPrefetch prefetch{hidden};
    const NeurekaActivity activity = time_neureka(job, cycles, quirks, prefetch);
    result.cycles = activity.cycles;
    result.hidden = prefetch.hidden;
    result.multiplications = activity.multiplications;
    result.peak_multiplications_per_cycle = job.peak_multiplications_per_cycle();
    for (size_t index = 0; index < neureka_phase_count; ++index) {
        const std::string name{name_of(static_cast<NeurekaPhase>(index))};
        result.phase_cycles[name] = activity.phases[index].cycles;
        result.phase_bytes[name] = activity.phases[index].bytes;
    }
    return result;
}

std::vector<Range> ranges(const std::vector<uint32_t> &registers, const Bytes &tcdm, const Bytes &weights,
                          uint32_t base, uint32_t mask, bool gvsoc) {
    std::vector<Range> found;
    for (const NeurekaRange &range :
         neureka_ranges(decode(registers), memory_of(tcdm, weights, base, mask), quirks_of(gvsoc)))
        found.emplace_back(name_of(range.use), range.write, range.in_weight_memory, range.begin, range.end);
    return found;
}

using Sizes = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Cycles = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;

NeurekaMode mode_named(const std::string &name) {
    if (name == "pointwise")
        return NeurekaMode::pointwise;
    if (name == "dense")
        return NeurekaMode::dense_3x3;
    if (name == "depthwise")
        return NeurekaMode::depthwise_3x3;
    throw std::invalid_argument("no mode is named " + name);
}

// Cycles in which each of many jobs keeps the array busy, as the device counts them; 0 where there is nothing to do.
Cycles busy(const std::string &mode, const Numbers &settings, const Sizes &height, const Sizes &width,
            const Sizes &inputs, const Sizes &outputs, const Sizes &bottom, const Sizes &right,
            const Sizes &weight_bits, const Sizes &scaled, const Sizes &prefetch) {
    const NeurekaMode chosen = mode_named(mode);
    const NeurekaTiming timing = timing_of(settings);
    const NeurekaQuirks quirks = NeurekaQuirks::named([&settings](const char *name) {
        const auto found = settings.find(name);
        return found != settings.end() && found->second != 0;
    });
    const size_t count = height.size();
    for (const Sizes *each : {&width, &inputs, &outputs, &bottom, &right, &weight_bits, &scaled, &prefetch})
        if (each->size() != count)
            throw std::invalid_argument("sizes of different lengths");
    auto found = std::make_unique<int64_t[]>(count);
    for (size_t i = 0; i < count; ++i) {
        if (height.data()[i] <= 0 || width.data()[i] <= 0 || inputs.data()[i] <= 0 || outputs.data()[i] <= 0)
            continue;
        const auto size = [i](const Sizes &values) { return static_cast<uint32_t>(values.data()[i]); };
        const NeurekaJob job =
            neureka_job_of({chosen, size(height), size(width), size(inputs), size(outputs), size(bottom), size(right),
                            size(weight_bits), scaled.data()[i] != 0, prefetch.data()[i] != 0});
        NeurekaPrefetch before;
        found[i] = neureka_cycles(job, timing, quirks, before) - timing.job;
    }
    int64_t *data = found.release();
    const nb::capsule owner(data, [](void *pointer) noexcept { delete[] static_cast<int64_t *>(pointer); });
    return Cycles(data, {count}, owner);
}

} // namespace

void bind_neureka(nb::module_ &module) {
    nb::class_<Result>(module, "NeurekaResult")
        .def_ro("fault", &Result::fault)
        .def_ro("cycles", &Result::cycles)
        .def_ro("hidden", &Result::hidden)
        .def_ro("multiplications", &Result::multiplications)
        .def_ro("peak_multiplications_per_cycle", &Result::peak_multiplications_per_cycle)
        .def_ro("phase_cycles", &Result::phase_cycles)
        .def_ro("phase_bytes", &Result::phase_bytes);
    module.def("neureka_run", &run, nb::arg("registers"), nb::arg("tcdm"), nb::arg("weights"), nb::arg("tcdm_base"),
               nb::arg("tcdm_mask"), nb::arg("timing"), nb::arg("gvsoc") = false, nb::arg("hidden") = 0);
    module.def("neureka_busy", &busy, nb::arg("mode"), nb::arg("settings"), nb::arg("height"), nb::arg("width"),
               nb::arg("inputs"), nb::arg("outputs"), nb::arg("bottom"), nb::arg("right"), nb::arg("weight_bits"),
               nb::arg("scaled"), nb::arg("prefetch"));
    module.def("neureka_ranges", &ranges, nb::arg("registers"), nb::arg("tcdm"), nb::arg("weights"),
               nb::arg("tcdm_base"), nb::arg("tcdm_mask"), nb::arg("gvsoc") = false);
}

} // namespace tilewright
