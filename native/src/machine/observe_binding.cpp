#include "machine/observe_binding.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

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

using Counts = std::array<std::pair<const char *, uint64_t>, 16>;

Counts counts_of(const HartGroup &group, const Counters &c, int64_t cycles, int64_t more_asleep) {
    const PipelineTiming &pipeline = group.pipeline;
    const uint64_t jump = pipeline.cycles[static_cast<size_t>(Timing::jump)] - 1u;
    return {{
        {"instructions", c.instructions},
        {"cycles", static_cast<uint64_t>(cycles)},
        {"loads", c.loads},
        {"stores", c.stores},
        {"jumps", c.jumps},
        {"branches", c.branches},
        {"taken", c.taken},
        {"stall_use", c.stall_use},
        {"stall_branch", c.taken * pipeline.taken_branch + c.jumps * jump},
        {"stall_bank", c.stall_bank},
        {"stall_unit", c.stall_unit},
        {"stall_memory", c.stall_memory},
        {"stall_misaligned", c.stall_misaligned},
        {"stall_fetch", c.stall_fetch},
        {"fetch_misses", c.fetch_misses},
        {"asleep", c.asleep + static_cast<uint64_t>(more_asleep)},
    }};
}

nb::dict counters_of(Machine &machine, uint32_t index) {
    const Hart &hart = machine.harts().at(index);
    // A hart that sleeps has counted until it fell asleep.
    const int64_t until =
        hart.state == HartState::asleep ? std::max(hart.time, hart.group->own_time(machine.now())) : hart.time;
    nb::dict result;
    for (const auto &[name, count] : counts_of(*hart.group, hart.counters, until - hart.started, until - hart.time))
        result[name] = count;
    return result;
}

// Columns of the passages so far, which are forgotten: times, harts, addresses, and all counters by name.
nb::tuple take_passages(Machine &machine) {
    const std::vector<Passage> passages = machine.take_passages();
    std::vector<int64_t> times;
    std::vector<uint16_t> harts;
    std::vector<uint32_t> addresses;
    std::map<std::string, std::vector<uint64_t>> counts;
    for (const Passage &passage : passages) {
        times.push_back(passage.time);
        harts.push_back(passage.hart);
        addresses.push_back(passage.pc);
        const HartGroup &group = *machine.harts()[passage.hart].group;
        for (const auto &[name, count] : counts_of(group, passage.counters, passage.cycles, 0))
            counts[name].push_back(count);
    }
    nb::dict columns;
    for (auto &[name, values] : counts)
        columns[name.c_str()] = column(std::move(values));
    return nb::make_tuple(column(std::move(times)), column(std::move(harts)), column(std::move(addresses)), columns);
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
        .def("mark", &Machine::mark, "hart"_a, "addresses"_a)
        .def("take_passages", &take_passages)
        .def("counters", &counters_of, "hart"_a)
        .def("far_accesses", &far_accesses)
        .def("state", &state_of, "hart"_a);
}

} // namespace tilewright
