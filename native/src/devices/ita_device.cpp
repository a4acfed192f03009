#include "devices/ita_device.h"

namespace tilewright {

ItaDevice::ItaDevice(Machine &machine, const std::string &name, const Settings &settings)
    : Hwpe(machine, name, settings), engine_({memory_.data, memory_.size}) {
    for (const std::string_view each : ItaTiming::names)
        timing_.set(each, settings[std::string(each)]);
    next_cycles_ = timing_.next_cycles;
}

std::optional<JobFault> ItaDevice::accept(const ItaJob &job) {
    if (const auto fault = engine_.accept(job))
        return JobFault{fault->description, fault->address};
    return std::nullopt;
}

Transfer ItaDevice::described(const ItaJob &job, uint32_t number) const {
    Transfer transfer{.what = "ITA job " + std::to_string(number), .lane = {}};
    for (const ItaRange &range : ita_ranges(job))
        add_range(transfer, range.write, memory_.base + range.begin, memory_.base + range.end);
    return transfer;
}

int64_t ItaDevice::begin(const ItaJob &job) {
    accesses_ += static_cast<uint64_t>(ita_accesses(job));
    return ita_cycles(job, timing_);
}

std::map<std::string, uint64_t> ItaDevice::statistics() const {
    std::map<std::string, uint64_t> result = Hwpe::statistics();
    result["accesses"] = accesses_;
    return result;
}

} // namespace tilewright
