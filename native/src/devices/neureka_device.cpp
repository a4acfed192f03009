#include "devices/neureka_device.h"

#include "devices/neureka_geometry.h"

#include <cstdio>

namespace tilewright {

NeurekaDevice::NeurekaDevice(Machine &machine, const std::string &name, const Settings &settings)
    : Hwpe(machine, name, settings),
      weights_(settings.has("weight_memory") ? &machine.needed_memory(settings.text("weight_memory")) : nullptr) {
    for (const std::string_view each : NeurekaTiming::names())
        timing_.set(each, settings[std::string(each)]);
    quirks_ = NeurekaQuirks::named([&settings](const char *key) { return settings.either(key, 0) != 0; });
}

NeurekaMemory NeurekaDevice::memories() const {
    NeurekaMemory memories{{memory_.data, memory_.size}, memory_.size - 1, memory_.base, {}};
    if (weights_ != nullptr)
        memories.weights = {weights_->data, weights_->size};
    return memories;
}

std::optional<JobFault> NeurekaDevice::accept(const NeurekaJob &job) {
    if (const auto fault = check_neureka(job, memories(), quirks_))
        return JobFault{fault->description, fault->address};
    return std::nullopt;
}

Transfer NeurekaDevice::described(const NeurekaJob &job, uint32_t number) const {
    char what[96];
    snprintf(what, sizeof what, "NEUREKA job %u, %ux%u %ux%ux%u", number, job.filter_size(), job.filter_size(),
             job.rows(), job.columns(), job.output_channels());
    Transfer transfer{.what = what, .lane = {}};
    for (const NeurekaRange &range : neureka_ranges(job, memories(), quirks_)) {
        const uint32_t base = range.in_weight_memory ? weights_->base : memory_.base;
        add_range(transfer, range.write, base + range.begin, base + range.end);
    }
    return transfer;
}

int64_t NeurekaDevice::begin(const NeurekaJob &job) {
    const NeurekaActivity activity = time_neureka(job, timing_, quirks_, prefetch_);
    multiplications_ += static_cast<uint64_t>(activity.multiplications);
    for (size_t i = 0; i < phases_.size(); ++i)
        phases_[i] += static_cast<uint64_t>(activity.phases[i].cycles);
    // Between a trigger and an idle status there is more than the job itself; a job behind another has none of it.
    phases_[static_cast<size_t>(NeurekaPhase::overhead)] -= static_cast<uint64_t>(timing_.job);
    return activity.cycles - timing_.job;
}

void NeurekaDevice::compute(const NeurekaJob &job) { compute_neureka(job, memories(), quirks_); }

std::map<std::string, uint64_t> NeurekaDevice::statistics() const {
    std::map<std::string, uint64_t> result = Hwpe::statistics();
    result["multiplications"] = multiplications_;
    for (size_t i = 0; i < phases_.size(); ++i)
        result["cycles_" + std::string(name_of(static_cast<NeurekaPhase>(i)))] = phases_[i];
    return result;
}

} // namespace tilewright
