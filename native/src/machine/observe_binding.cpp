#include "machine/observe_binding.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

namespace nb = nanobind;
using namespace nb::literals;

namespace tilewright {

namespace {

template <class Value> using Column = nb::ndarray<nb::numpy, Value, nb::ndim<1>>;

template <class Value> Column<Value> column(std::vector<Value> values) {
    auto kept = std::make_unique<std::vector<Value>>(std::move(values));
    Value *data = kept->data();
    const size_t count = kept->size();
    const nb::capsule owner(kept.get(), [](void *p) noexcept { delete static_cast<std::vector<Value> *>(p); });
    kept.release();
    return Column<Value>(data, {count}, owner);
}

// Addresses of instructions that took time, and their cycles.
nb::tuple profile_of(Machine &machine, uint32_t group) {
    std::vector<uint32_t> addresses;
    std::vector<uint64_t> cycles;
    for (const Code &code : machine.groups().at(group)->code)
        for (uint32_t i = 0; code.profile && i < code.size / 2; ++i)
            if (code.profile[i] != 0) {
                addresses.push_back(code.base + 2 * i);
                cycles.push_back(code.profile[i]);
            }
    return nb::make_tuple(column(std::move(addresses)), column(std::move(cycles)));
}

// Columns of the events so far, which are forgotten: times, harts, kinds, addresses.
nb::tuple take_trace(Machine &machine) {
    const std::vector<TraceEvent> events = machine.recorded_trace().take();
    std::vector<int64_t> times;
    std::vector<uint16_t> harts;
    std::vector<uint8_t> kinds;
    std::vector<uint32_t> addresses;
    for (const TraceEvent &event : events) {
        times.push_back(event.time);
        harts.push_back(event.hart);
        kinds.push_back(static_cast<uint8_t>(event.kind));
        addresses.push_back(event.pc);
    }
    return nb::make_tuple(column(std::move(times)), column(std::move(harts)), column(std::move(kinds)),
                          column(std::move(addresses)));
}

std::map<std::string, uint64_t> far_accesses(const Machine &machine) {
    std::map<std::string, uint64_t> result;
    for (const auto &memory : machine.memories())
        result[memory->name] = memory->far_accesses;
    return result;
}

const char *state_of(Machine &machine, uint32_t hart) {
    switch (machine.harts().at(hart).state) {
    case HartState::off:
        return "off";
    case HartState::running:
        return "running";
    case HartState::asleep:
        return "asleep";
    }
    return "";
}

} // namespace

void bind_observation(nb::class_<Machine> &machine) {
    machine.def("record_profile", &Machine::record_profile, "on"_a)
        .def("profile", &profile_of, "group"_a)
        .def("record_trace", &Machine::record_trace, "most"_a, "functions"_a)
        .def("take_trace", &take_trace)
        .def_prop_ro("trace_left_out", [](Machine &self) { return self.recorded_trace().left_out(); })
        .def("break_at", &Machine::break_at, "addresses"_a)
        .def_prop_ro("stopped_hart", &Machine::stopped_hart)
        .def("far_accesses", &far_accesses)
        .def("state", &state_of, "hart"_a);
}

} // namespace tilewright
