#include "checks/binding.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tilewright {

namespace {

nb::dict dictionary_of(const TransferRecord &transfer) {
    nb::dict result;
    result["id"] = transfer.id;
    result["what"] = transfer.what.c_str();
    result["lane"] = transfer.lane.c_str();
    result["hart"] = transfer.hart;
    result["pc"] = transfer.pc;
    result["started"] = transfer.started;
    result["finished"] = transfer.finished;
    result["bytes"] = transfer.bytes;
    return result;
}

nb::list list_of_numbers(const std::vector<uint32_t> &numbers) {
    nb::list result;
    for (const uint32_t number : numbers)
        result.append(number);
    return result;
}

nb::dict dictionary_of(const OtherAccess &other) {
    nb::dict result;
    result["hart"] = other.hart;
    result["pc"] = other.pc;
    result["stack"] = list_of_numbers(other.stack);
    return result;
}

nb::dict dictionary_of(const Finding &finding) {
    nb::dict result;
    result["kind"] = name_of(finding.check);
    result["warning"] = is_warning(finding.check);
    result["message"] = finding.message.c_str();
    result["hart"] = finding.hart;
    result["pc"] = finding.pc;
    result["address"] = finding.address;
    result["time"] = finding.time;
    result["count"] = finding.count;
    result["stack"] = list_of_numbers(finding.stack);
    result["missing"] = finding.missing.c_str();
    result["other"] = finding.other ? nb::object(dictionary_of(*finding.other)) : nb::object(nb::none());
    result["transfer"] = finding.transfer ? nb::object(dictionary_of(*finding.transfer)) : nb::object(nb::none());
    result["range"] =
        finding.range ? nb::object(nb::make_tuple(finding.range->begin, finding.range->end)) : nb::object(nb::none());
    return result;
}

template <class Items> nb::list list_of(const Items &items) {
    nb::list result;
    for (const auto &item : items)
        result.append(dictionary_of(item));
    return result;
}

} // namespace

void bind_checks(nb::class_<Machine> &machine) {
    machine.def("observe_checks", &Machine::observe_checks, "on"_a)
        .def(
            "record_transfers", [](Machine &self, bool on) { self.checks().record_transfers(on); }, "on"_a)
        .def("findings", [](Machine &self) { return list_of(self.checks().findings()); })
        .def(
            "add_flag", [](Machine &self, uint32_t address, uint32_t size) { self.checks().add_flag(address, size); },
            "address"_a, "size"_a)
        .def(
            "look_for_races", [](Machine &self, bool on) { self.checks().look_for_races(on); }, "on"_a)
        .def_prop_ro("findings_left_out", [](Machine &self) { return self.checks().findings_left_out(); })
        .def(
            "set_stack", [](Machine &self, uint32_t hart, uint32_t low) { self.harts().at(hart).stack_low = low; },
            "hart"_a, "low"_a)
        .def("transfers", [](Machine &self) { return list_of(self.checks().transfers()); })
        .def_prop_ro("transfers_left_out", [](Machine &self) { return self.checks().transfers_left_out(); });
}

} // namespace tilewright
