#include "devices/ita_device.h"

#include "machine/machine.h"

#include <cstdio>

namespace tilewright {

namespace {

enum : uint32_t {
    reg_trigger = 0x00,
    reg_acquire = 0x04,
    reg_finished = 0x08,
    reg_status = 0x0c,
    reg_running = 0x10,
    reg_clear = 0x14,
    reg_event = 0x1c,
    reg_job = 0x20, // the first of a job's own
};
constexpr uint32_t all_queued = ~0u;         // acquire: every context has a job
constexpr uint32_t being_written = ~0u - 1u; // acquire: somebody has acquired and not triggered yet

} // namespace

ItaDevice::ItaDevice(Machine &machine, const std::string &name, const Settings &settings)
    : Device(machine, name), memory_(machine.needed_memory(settings.text("memory"))),
      events_(settings.has("events") ? &machine.needed_device(settings.text("events")) : nullptr),
      event_(events_ == nullptr ? 0 : settings.word("event")),
      thread_(machine.checks().add_thread(
          name, "a look at a register of '" + name + "' that shows its end, or its event", true)),
      start_cycles_(settings["start_cycles"]), engine_({memory_.data, memory_.size}) {
    for (const std::string_view each : ItaTiming::names)
        timing_.set(each, settings[std::string(each)]);
}

Reply ItaDevice::access(const Access &access) {
    const uint32_t offset = access.offset;
    if (offset >= reg_job)
        return access_job(access);
    if (access.write) {
        if (offset == reg_trigger)
            trigger(access);
        else if (offset == reg_clear)
            clear(access.value == 0);
        else if (offset == reg_event)
            signal_end(access.time);
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

Reply ItaDevice::access_job(const Access &access) {
    const uint32_t number = (access.offset - reg_job) / 4;
    if (number >= ItaRegisters{}.size())
        return {.refused = true};
    if (access.write && jobs_.size() == contexts)
        fail(access, "a register is written while all contexts have jobs; acquire one first", access.address);
    uint32_t &value = offered().registers[number];
    if (access.write)
        value = access.value;
    return {.value = value};
}

void ItaDevice::fail(const Access &access, const std::string &message, uint32_t address) {
    machine_.stop_with(
        Fault{"bad-job", "'" + name() + "': " + message, access.hart.index, access.pc, address, access.time});
}

uint32_t ItaDevice::acquire(const Hart &hart) {
    if (jobs_.size() == contexts)
        return all_queued;
    if (acquired_)
        return being_written;
    acquired_ = true;
    observe_end(hart, offered());
    return next_job_;
}

uint32_t ItaDevice::status(const Hart &hart) {
    observe_ends(hart);
    uint32_t busy = 0;
    for (uint32_t i = 0; i < contexts; ++i)
        busy |= contexts_[i].busy ? 1u << 8 * i : 0;
    return busy;
}

// A hart reads which jobs have ended, or gets registers that an earlier job had.
void ItaDevice::observe_ends(const Hart &hart) {
    for (const Context &context : contexts_)
        observe_end(hart, context);
}

void ItaDevice::observe_end(const Hart &hart, const Context &context) {
    if (!context.busy && context.transfer != no_transfer)
        machine_.checks().ended(hart, context.transfer);
}

void ItaDevice::trigger(const Access &access) {
    if (jobs_.size() == contexts) {
        fail(access, "a job is triggered while all contexts have one; acquire one first", access.address);
        return;
    }
    acquired_ = false;
    Context &context = offered();
    Queued queued{next_job_, decode_ita_job(context.registers), access.time, access.hart.index, access.pc, 0};
    if (const auto fault = engine_.accept(queued.job)) {
        fail(access, "job " + std::to_string(next_job_) + ", " + fault->description, fault->address);
        return;
    }
    ++next_job_;
    context.busy = true;
    describe(queued);
    context.transfer = queued.transfer;
    jobs_.push_back(std::move(queued));
    if (access.value == 0 && !running_)
        start(access.time + start_cycles_);
}

// Tells of a job and of what it reads and writes.
void ItaDevice::describe(Queued &queued) {
    if (!machine_.wants_transfers())
        return;
    Transfer transfer{.what = "ITA job " + std::to_string(queued.number),
                      .lane = name(),
                      .thread = thread_,
                      .hart = queued.hart,
                      .pc = queued.pc,
                      .started = queued.triggered,
                      .copies = false,
                      .events = events_ == nullptr ? 0 : 1u << event_};
    for (const ItaRange &range : ita_ranges(queued.job)) {
        (range.write ? transfer.writes : transfer.reads)
            .push_back({memory_.base + range.begin, memory_.base + range.end});
        transfer.bytes += range.end - range.begin;
    }
    queued.transfer = machine_.transfer_started(std::move(transfer));
}

void ItaDevice::start(int64_t time) {
    running_ = true;
    const int64_t cycles = ita_cycles(jobs_.front().job, timing_);
    busy_ += static_cast<uint64_t>(cycles);
    accesses_ += static_cast<uint64_t>(ita_accesses(jobs_.front().job));
    machine_.schedule(time + cycles, *this, ++generation_);
}

void ItaDevice::happen(uint32_t tag) {
    if (tag != generation_)
        return;
    const Queued done = jobs_.front();
    jobs_.pop_front();
    running_ = false;
    // Only now, so that whoever reads the output too early finds what was there before.
    engine_.run(done.job);
    ++finished_;
    contexts_[done.number % contexts].busy = false;
    const int64_t now = machine_.now();
    if (done.transfer != no_transfer)
        machine_.transfer_done(done.transfer, now);
    signal_end(now);
    if (!jobs_.empty())
        start(now + timing_.next_cycles);
}

void ItaDevice::signal_end(int64_t time) {
    if (events_ != nullptr)
        events_->signal(event_, time);
}

void ItaDevice::clear(bool registers) {
    ++generation_;
    for (const Queued &queued : jobs_)
        if (queued.transfer != no_transfer)
            machine_.transfer_done(queued.transfer, machine_.now());
    jobs_.clear();
    for (Context &context : contexts_)
        context = registers ? Context{} : Context{.registers = context.registers};
    running_ = acquired_ = false;
    next_job_ = finished_ = 0;
    engine_.clear();
}

std::map<std::string, uint64_t> ItaDevice::statistics() const {
    return {{"jobs", finished_}, {"busy", busy_}, {"accesses", accesses_}};
}

} // namespace tilewright
