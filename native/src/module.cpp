// What Python sees.
#include "checks/binding.h"
#include "devices/ita_binding.h"
#include "devices/neureka_binding.h"
#include "isa/float32_binding.h"
#include "isa/table_binding.h"
#include "machine/machine.h"
#include "machine/observe_binding.h"
#include "schedule/binding.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tilewright {

namespace {

using Numbers = std::map<std::string, int64_t>;

PipelineTiming pipeline_of(const Settings &settings) {
    PipelineTiming timing;
    for (size_t i = 0; i < timing_names.size(); ++i) {
        // What a pipeline does not tell apart.
        const bool finer = i >= static_cast<size_t>(Timing::fp_double) && !settings.has(timing_names[i]);
        const std::string name = !finer ? timing_names[i] : i <= static_cast<size_t>(Timing::fp_dot) ? "fp" : "alu";
        timing.cycles[i] = static_cast<uint8_t>(settings[name]);
        timing.use[i] = static_cast<uint8_t>(settings.either(name + "_use", 0));
    }
    timing.jump_register_written = static_cast<uint8_t>(settings["jump_register_written"]);
    timing.taken_branch = static_cast<uint8_t>(settings["taken_branch"]);
    timing.fp_load_again = static_cast<uint8_t>(settings["fp_load_again"]);
    timing.scoreboard = settings.either("scoreboard", 0) != 0;
    return timing;
}

FetchTiming fetch_of(const Settings &settings) {
    FetchTiming timing;
    timing.line_bytes = static_cast<uint32_t>(settings.either("line_bytes", timing.line_bytes));
    timing.sets = settings.word("sets");
    timing.ways = settings.word("ways");
    timing.shared_banks = settings.word("shared_banks");
    timing.shared_sets = settings.word("shared_sets");
    timing.shared_ways = settings.word("shared_ways");
    timing.refill_cycles = settings.word("refill_cycles");
    timing.memory_cycles = settings.word("memory_cycles");
    const auto other = [&settings](const char *name) { return static_cast<uint32_t>(settings.either(name, 0)); };
    timing.shared_by = other("shared_by");
    timing.prefetch = other("prefetch") != 0;
    timing.outer_by = other("outer_by");
    timing.outer_sets = other("outer_sets");
    timing.outer_ways = other("outer_ways");
    timing.outer_cycles = other("outer_cycles");
    timing.lookup_cycles = static_cast<uint32_t>(settings.either("lookup_cycles", 0));
    return timing;
}

std::optional<TilesDescription> tiles_of(const Settings &settings) {
    if (!settings.has("harts"))
        return std::nullopt;
    return TilesDescription{settings.word("harts"),        settings.word("banks"),
                            settings.word("tiles"),        settings.word("subgroups"),
                            settings.word("groups"),       settings.word("own_bytes"),
                            settings.word("cycles_tile"),  settings.word("cycles_subgroup"),
                            settings.word("cycles_group"), settings.word("cycles_far")};
}

void add_harts(Machine &machine, const std::string &name, const std::vector<std::string> &extensions,
               const Numbers &harts, const Numbers &pipeline, const Numbers &fetch, const Numbers &cycles,
               const std::string &near, const Numbers &tiles) {
    const Settings general(name, harts), stages(name + ".pipeline", pipeline), caches(name + ".fetch", fetch);
    GroupDescription group;
    group.name = name;
    group.count = general.word("count");
    group.first_id = general.word("first_id");
    group.extensions = extensions;
    group.pipeline = pipeline_of(stages);
    group.divide = {static_cast<int32_t>(stages["divide_signed_zero"]),
                    static_cast<int32_t>(stages["divide_unsigned_zero"]),
                    static_cast<int32_t>(stages["divide_negative"]), stages.either("divide_by_difference", 0) != 0};
    group.near = near;
    group.near_banks = general["near_banks"] != 0;
    group.outstanding_loads = static_cast<uint32_t>(general.either("outstanding_loads", 0));
    group.early_counters = general["early_counters"] != 0;
    group.clock_numerator = general["clock_numerator"];
    group.clock_denominator = general["clock_denominator"];
    group.fetch = fetch_of(caches);
    group.tiles = tiles_of(Settings(name + ".tiles", tiles));
    group.cycles = cycles;
    machine.add_harts(group);
}

Hart &hart_of(Machine &machine, uint32_t hart) { return machine.harts().at(hart); }

std::span<uint8_t> memory_part(Machine &machine, const std::string &name, uint32_t offset, uint32_t size) {
    Memory &memory = machine.needed_memory(name);
    if (offset > memory.size || size > memory.size - offset)
        throw nb::index_error(("memory '" + name + "' is smaller").c_str());
    return {memory.data + offset, size};
}

// What each device did.
std::map<std::string, std::map<std::string, uint64_t>> statistics_of(const Machine &machine) {
    std::map<std::string, std::map<std::string, uint64_t>> result;
    for (const auto &device : machine.devices())
        result[device->name()] = device->statistics();
    return result;
}

nb::object fault_of(const Machine &machine) {
    const auto fault = machine.fault();
    if (!fault)
        return nb::none();
    nb::dict result;
    result["kind"] = fault->kind;
    result["message"] = fault->message;
    result["hart"] = fault->hart;
    result["pc"] = fault->pc;
    result["address"] = fault->address;
    result["time"] = fault->time;
    return result;
}

const char *stop_name(Stop stop) {
    switch (stop) {
    case Stop::cycle_limit:
        return "cycle-limit";
    case Stop::exited:
        return "exited";
    case Stop::fault:
        return "fault";
    case Stop::deadlock:
        return "deadlock";
    case Stop::breakpoint:
        return "breakpoint";
    }
    return "";
}

} // namespace

NB_MODULE(_native, m) {
    tilewright::bind_float32(m);
    tilewright::bind_table(m);
    tilewright::bind_ita(m);
    tilewright::bind_neureka(m);
    tilewright::schedule::bind_schedule(m);
    nb::class_<Machine> machine(m, "Machine");
    tilewright::bind_checks(machine);
    tilewright::bind_observation(machine);
    machine.def(nb::init<>())
        .def("add_memory", &Machine::add_memory, "name"_a, "base"_a, "size"_a, "banks"_a, "executable"_a,
             "bank_bytes"_a = 4)
        .def("add_outer_memory", &Machine::add_outer_memory, "name"_a, "size"_a, "fill"_a)
        .def("add_alias", &Machine::add_alias, "memory"_a, "base"_a, "size"_a, "test_and_set"_a, "group"_a)
        .def("add_harts", &add_harts, "name"_a, "extensions"_a, "harts"_a, "pipeline"_a, "fetch"_a, "cycles"_a,
             "near"_a, "tiles"_a = Numbers())
        .def("add_units", &Machine::add_units, "harts"_a, "instructions"_a, "count"_a, "cycles"_a, "round_robin"_a)
        .def(
            "add_device",
            [](Machine &machine, const std::string &kind, const std::string &name, uint32_t base, uint32_t size,
               const std::map<std::string, Setting> &settings) {
                machine.add_device(kind, name, base, size, settings);
            },
            "kind"_a, "name"_a, "base"_a, "size"_a, "settings"_a)
        .def("add_window", &Machine::add_window, "name"_a, "device"_a, "base"_a, "size"_a, "offset"_a)
        .def("talk_to_host", &Machine::talk_to_host, "to_host"_a, "from_host"_a)
        .def("start", &Machine::start, "hart"_a, "pc"_a, "time"_a)
        .def(
            "run", [](Machine &machine, int64_t until) { return stop_name(machine.run(until)); }, "until"_a,
            nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("now", &Machine::now)
        .def_prop_ro("exit_code", &Machine::exit_code)
        .def("take_output",
             [](Machine &machine) {
                 const std::string text = machine.take_output();
                 return nb::bytes(text.data(), text.size());
             })
        .def("fault", &fault_of)
        .def(
            "register",
            [](Machine &machine, uint32_t hart, uint32_t number) { return hart_of(machine, hart).x.at(number); },
            "hart"_a, "number"_a)
        .def(
            "set_register",
            [](Machine &machine, uint32_t hart, uint32_t number, uint32_t value) {
                if (number != 0)
                    hart_of(machine, hart).x.at(number) = value;
            },
            "hart"_a, "number"_a, "value"_a)
        .def(
            "float_register",
            [](Machine &machine, uint32_t hart, uint32_t number) { return hart_of(machine, hart).f.at(number); },
            "hart"_a, "number"_a)
        .def(
            "set_float_register",
            [](Machine &machine, uint32_t hart, uint32_t number, uint64_t value) {
                hart_of(machine, hart).f.at(number) = value;
            },
            "hart"_a, "number"_a, "value"_a)
        .def(
            "fcsr", [](Machine &machine, uint32_t hart) { return hart_of(machine, hart).fcsr; }, "hart"_a)
        .def(
            "set_fcsr",
            [](Machine &machine, uint32_t hart, uint32_t value) { hart_of(machine, hart).fcsr = value & 0xff; },
            "hart"_a, "value"_a)
        .def(
            "pc", [](Machine &machine, uint32_t hart) { return machine.pc_of(hart_of(machine, hart)); }, "hart"_a)
        .def(
            "step", [](Machine &machine, uint32_t hart) { return stop_name(machine.step(hart)); }, "hart"_a)
        .def(
            "disassemble",
            [](Machine &machine, uint32_t hart, uint32_t word, uint32_t pc) {
                return hart_of(machine, hart).group->decoder->disassemble(word, pc);
            },
            "hart"_a, "word"_a, "pc"_a)
        .def(
            "read",
            [](Machine &machine, uint32_t address, uint32_t size) {
                const auto bytes = machine.bytes(address, size);
                if (bytes.size() != size)
                    throw nb::index_error("no memory is there");
                return nb::bytes(reinterpret_cast<const char *>(bytes.data()), bytes.size());
            },
            "address"_a, "size"_a)
        .def(
            "write",
            [](Machine &machine, uint32_t address, const nb::bytes &data) {
                const auto bytes = machine.bytes(address, static_cast<uint32_t>(data.size()));
                if (bytes.size() != data.size())
                    throw nb::index_error("no memory is there");
                std::memcpy(bytes.data(), data.data(), data.size());
                machine.checks().written_from_outside({address, address + static_cast<uint32_t>(data.size())});
                machine.forget_code();
            },
            "address"_a, "data"_a)
        .def(
            "read_memory",
            [](Machine &machine, const std::string &name, uint32_t offset, uint32_t size) {
                const auto bytes = memory_part(machine, name, offset, size);
                return nb::bytes(reinterpret_cast<const char *>(bytes.data()), bytes.size());
            },
            "name"_a, "offset"_a, "size"_a)
        .def(
            "write_memory",
            [](Machine &machine, const std::string &name, uint32_t offset, const nb::bytes &data) {
                const auto bytes = memory_part(machine, name, offset, static_cast<uint32_t>(data.size()));
                std::memcpy(bytes.data(), data.data(), data.size());
                const uint32_t address = machine.needed_memory(name).base + offset;
                machine.checks().written_from_outside({address, address + static_cast<uint32_t>(data.size())});
                machine.forget_code();
            },
            "name"_a, "offset"_a, "data"_a)
        .def("statistics", &statistics_of);
}

} // namespace tilewright
