#include "devices/neureka_device.h"

#include "devices/neureka_geometry.h"
#include "machine/machine.h"

#include <algorithm>
#include <cstdio>

namespace tilewright {

namespace {

enum : uint32_t {
    reg_trigger = 0x00,
    reg_acquire = 0x04,
    reg_finished = 0x08,
    reg_status = 0x0c,
    reg_running = 0x10,
    reg_reset = 0x14,
    reg_job = 0x20, // the first of a job's own
};
constexpr uint32_t all_queued = ~0u;         // acquire: two jobs are queued or run
constexpr uint32_t being_written = ~0u - 1u; // acquire: somebody has acquired and not triggered yet

} // namespace

NeurekaDevice::NeurekaDevice(Machine &machine, const std::string &name, const Settings &settings)
    : Device(machine, name), memory_(machine.needed_memory(settings.text("memory"))),
      weights_(settings.has("weight_memory") ? &machine.needed_memory(settings.text("weight_memory")) : nullptr),
      events_(machine.needed_device(settings.text("events"))), event_(settings.word("event")),
      thread_(machine.checks().add_thread(
          name, "a look at a register of '" + name + "' that shows its end, or its event", true)),
      start_cycles_(settings["start_cycles"]) {
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

Reply NeurekaDevice::access(const Access &access) {
    const uint32_t offset = access.offset;
    if (offset >= reg_job) {
        const uint32_t number = (offset - reg_job) / 4;
        if (number >= NeurekaRegisters{}.size())
            return {.refused = true};
        uint32_t &value = offered().registers[number];
        if (access.write)
            value = access.value;
        return {.value = value};
    }
    if (access.write) {
        if (offset == reg_trigger)
            trigger(access);
        else if (offset == reg_reset)
            reset();
        return {};
    }
    switch (offset) {
    case reg_acquire:
        return {.value = acquire(access.hart)};
    case reg_finished:
        observe_ends(access.hart);
        return {.value = finished_};
    case reg_status:
        return {.value = status(access.hart)};
    case reg_running:
        observe_ends(access.hart);
        return {.value = jobs_.empty() ? next_job_ : jobs_.front().number};
    default:
        return {};
    }
}

uint32_t NeurekaDevice::acquire(const Hart &hart) {
    if (jobs_.size() == contexts)
        return all_queued;
    if (acquired_)
        return being_written;
    acquired_ = true;
    observe_end(hart, offered());
    return next_job_;
}

uint32_t NeurekaDevice::status(const Hart &hart) {
    observe_ends(hart);
    uint32_t busy = 0;
    for (uint32_t i = 0; i < contexts; ++i)
        busy |= contexts_[i].busy ? 1u << 8 * i : 0;
    return busy;
}

// A hart reads which jobs have ended, or gets registers that the job before the last one had.
void NeurekaDevice::observe_ends(const Hart &hart) {
    for (const Context &context : contexts_)
        observe_end(hart, context);
}

void NeurekaDevice::observe_end(const Hart &hart, const Context &context) {
    if (!context.busy && context.transfer != no_transfer)
        machine_.checks().ended(hart, context.transfer);
}

void NeurekaDevice::trigger(const Access &access) {
    if (jobs_.size() == contexts)
        return;
    acquired_ = false;
    Context &context = offered();
    Queued queued{next_job_++, decode_neureka_job(context.registers), access.time, access.hart.index, access.pc, 0};
    if (const auto fault = check_neureka(queued.job, memories(), quirks_)) {
        machine_.stop_with(Fault{"bad-job", "'" + name() + "': " + fault->description, queued.hart, queued.pc,
                                 fault->address, access.time});
        return;
    }
    context.busy = true;
    describe(queued);
    context.transfer = queued.transfer;
    jobs_.push_back(std::move(queued));
    if (jobs_.size() == 1)
        start(access.time + start_cycles_);
}

// Tells of a job and of what it reads and writes.
void NeurekaDevice::describe(Queued &queued) {
    if (!machine_.wants_transfers())
        return;
    const NeurekaJob &job = queued.job;
    char what[96];
    snprintf(what, sizeof what, "NEUREKA job %u, %ux%u %ux%ux%u", queued.number, job.filter_size(), job.filter_size(),
             job.rows(), job.columns(), job.output_channels());
    Transfer transfer{.what = what,
                      .lane = name(),
                      .thread = thread_,
                      .hart = queued.hart,
                      .pc = queued.pc,
                      .started = queued.triggered,
                      .copies = false,
                      .events = 1u << event_};
    for (const NeurekaRange &range : neureka_ranges(job, memories(), quirks_)) {
        const uint32_t base = range.in_weight_memory ? weights_->base : memory_.base;
        (range.write ? transfer.writes : transfer.reads).push_back({base + range.begin, base + range.end});
        transfer.bytes += range.end - range.begin;
    }
    queued.transfer = machine_.transfer_started(std::move(transfer));
}

void NeurekaDevice::start(int64_t time) {
    const NeurekaActivity activity = time_neureka(jobs_.front().job, timing_, quirks_, prefetch_);
    const int64_t cycles = activity.cycles - timing_.job;
    busy_ += static_cast<uint64_t>(cycles);
    multiplications_ += static_cast<uint64_t>(activity.multiplications);
    for (size_t i = 0; i < phases_.size(); ++i)
        phases_[i] += static_cast<uint64_t>(activity.phases[i].cycles);
    // Between a trigger and an idle status there is more than the job itself; a job behind another has none of it.
    phases_[static_cast<size_t>(NeurekaPhase::overhead)] -= static_cast<uint64_t>(timing_.job);
    machine_.schedule(time + cycles, *this, ++generation_);
}

void NeurekaDevice::happen(uint32_t tag) {
    if (tag != generation_)
        return;
    const Queued done = jobs_.front();
    jobs_.pop_front();
    // Only now, so that whoever reads the output too early finds what was there before.
    compute_neureka(done.job, memories(), quirks_);
    ++finished_;
    contexts_[done.number % contexts].busy = false;
    const int64_t now = machine_.now();
    if (done.transfer != no_transfer)
        machine_.transfer_done(done.transfer, now);
    events_.signal(event_, now);
    if (!jobs_.empty())
        start(now);
}

void NeurekaDevice::reset() {
    ++generation_;
    for (const Queued &queued : jobs_)
        if (queued.transfer != no_transfer)
            machine_.transfer_done(queued.transfer, machine_.now());
    jobs_.clear();
    contexts_ = {};
    acquired_ = false;
    next_job_ = 0;
    prefetch_ = {};
}

std::map<std::string, uint64_t> NeurekaDevice::statistics() const {
    std::map<std::string, uint64_t> result{{"jobs", finished_}, {"busy", busy_}, {"multiplications", multiplications_}};
    for (size_t i = 0; i < phases_.size(); ++i)
        result["cycles_" + std::string(name_of(static_cast<NeurekaPhase>(i)))] = phases_[i];
    return result;
}

} // namespace tilewright
