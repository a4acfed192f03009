// What accelerators of PULP clusters (hardware processing engines) have in common as cores see them: registers of some
// jobs, which run one after the other, and an event at the end of each.
#pragma once

#include "machine/machine.h"

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace tilewright {

// Why a job cannot be.
struct JobFault {
    std::string description;
    uint32_t address = 0;
};

// Settings: memory (name), start_cycles (from a trigger to the first cycle of the job) and, where there is one, events
// (the event unit) with event (line).
template <class Job, class Registers, uint32_t Contexts> class Hwpe : public Device {
  public:
    Hwpe(Machine &machine, const std::string &name, const Settings &settings)
        : Device(machine, name), memory_(machine.needed_memory(settings.text("memory"))),
          events_(settings.has("events") ? &machine.needed_device(settings.text("events")) : nullptr),
          event_(events_ == nullptr ? 0 : settings.word("event")),
          thread_(machine.checks().add_thread(
              name, "a look at a register of '" + name + "' that shows its end, or its event", true)),
          start_cycles_(settings["start_cycles"]) {}

    Reply access(const Access &access) final {
        if (access.offset >= reg_job)
            return access_job(access);
        if (access.write) {
            if (access.offset == reg_trigger)
                trigger(access);
            else if (access.offset == reg_clear)
                clear(access.value == 0);
            else if (access.offset == reg_event)
                signal_end(access.time);
            return {};
        }
        if (access.offset == reg_acquire)
            return {.value = acquire(access.hart)};
        if (access.offset != reg_finished && access.offset != reg_status && access.offset != reg_running)
            return {};
        for (const Context &context : contexts_)
            observe_end(access.hart, context);
        return {.value = access.offset == reg_finished ? finished_
                         : access.offset == reg_status ? status()
                         : jobs_.empty()               ? next_job_
                                                       : jobs_.front().number};
    }

    void happen(uint32_t tag) final {
        if (tag != generation_)
            return;
        const Queued done = jobs_.front();
        jobs_.pop_front();
        running_ = false;
        // Only now, so that whoever reads the output too early finds what was there before.
        compute(done.job);
        ++finished_;
        ++computed_;
        contexts_[done.number % Contexts].busy = false;
        const int64_t now = machine_.now();
        if (done.transfer != no_transfer)
            machine_.transfer_done(done.transfer, now);
        signal_end(now);
        if (!jobs_.empty())
            start(now + next_cycles_);
    }

    std::map<std::string, uint64_t> statistics() const override { return {{"jobs", computed_}, {"busy", busy_}}; }

  protected:
    virtual Job decoded(const Registers &registers) const = 0;
    // Takes a job, to be computed behind those that it took before; or says why it cannot.
    virtual std::optional<JobFault> accept(const Job &job) = 0;
    // What a job is, reads and writes.
    virtual Transfer described(const Job &job, uint32_t number) const = 0;
    // Its cycles, at its first one.
    virtual int64_t begin(const Job &job) = 0;
    virtual void compute(const Job &job) = 0;
    // Forgets all that it knows of jobs.
    virtual void forget() = 0;

    static void add_range(Transfer &transfer, bool write, uint32_t begin, uint32_t end) {
        (write ? transfer.writes : transfer.reads).push_back({begin, end});
        transfer.bytes += end - begin;
    }

    Memory &memory_;
    int64_t next_cycles_ = 0; // between two jobs

  private:
    enum : uint32_t {
        reg_trigger = 0x00,  // 0: run what is queued; else only queue
        reg_acquire = 0x04,  // the number of the next job, or one of the two below
        reg_finished = 0x08, // jobs
        reg_status = 0x0c,   // a byte for each context: whether its job is queued or runs
        reg_running = 0x10,  // the number of the job
        reg_clear = 0x14,    // 0: registers as well
        reg_event = 0x1c,    // signals one
        reg_job = 0x20,      // the first of a job's own
    };
    static constexpr uint32_t all_queued = ~0u;         // acquire: every context has a job
    static constexpr uint32_t being_written = ~0u - 1u; // acquire: somebody has acquired and not triggered yet

    struct Queued {
        uint32_t number;
        Job job;
        uint32_t transfer = no_transfer;
    };
    struct Context {
        Registers registers{};
        bool busy = false;
        uint32_t transfer = no_transfer; // of its last job
    };

    Context &offered() { return contexts_[next_job_ % Contexts]; }

    void fail(const Access &access, const std::string &message, uint32_t address) {
        machine_.stop_with(
            Fault{"bad-job", "'" + name() + "': " + message, access.hart.index, access.pc, address, access.time});
    }

    Reply access_job(const Access &access) {
        const uint32_t number = (access.offset - reg_job) / 4;
        if (number >= Registers{}.size())
            return {.refused = true};
        if (access.write && jobs_.size() == Contexts)
            fail(access, "a register is written while all contexts have jobs; acquire one first", access.address);
        uint32_t &value = offered().registers[number];
        if (access.write)
            value = access.value;
        return {.value = value};
    }

    uint32_t acquire(const Hart &hart) {
        if (jobs_.size() == Contexts)
            return all_queued;
        if (acquired_)
            return being_written;
        acquired_ = true;
        observe_end(hart, offered());
        return next_job_;
    }

    uint32_t status() const {
        uint32_t busy = 0;
        for (uint32_t i = 0; i < Contexts; ++i)
            busy |= contexts_[i].busy ? 1u << 8 * i : 0;
        return busy;
    }

    // A hart reads which jobs have ended, or gets registers that an earlier job had.
    void observe_end(const Hart &hart, const Context &context) {
        if (!context.busy && context.transfer != no_transfer)
            machine_.checks().ended(hart, context.transfer);
    }

    void trigger(const Access &access) {
        if (jobs_.size() == Contexts) {
            fail(access, "a job is triggered while all contexts have one; acquire one first", access.address);
            return;
        }
        acquired_ = false;
        Context &context = offered();
        Queued queued{next_job_, decoded(context.registers)};
        if (const auto fault = accept(queued.job)) {
            fail(access, "job " + std::to_string(next_job_) + ", " + fault->description, fault->address);
            return;
        }
        ++next_job_;
        if (machine_.wants_transfers())
            queued.transfer = machine_.transfer_started(observed(queued, access));
        context.busy = true;
        context.transfer = queued.transfer;
        jobs_.push_back(std::move(queued));
        if (access.value == 0 && !running_)
            start(access.time + start_cycles_);
    }

    Transfer observed(const Queued &queued, const Access &access) const {
        Transfer transfer = described(queued.job, queued.number);
        transfer.lane = name();
        transfer.thread = thread_;
        transfer.hart = access.hart.index;
        transfer.pc = access.pc;
        transfer.started = access.time;
        transfer.copies = false;
        transfer.events = events_ == nullptr ? 0 : 1u << event_;
        return transfer;
    }

    void start(int64_t time) {
        running_ = true;
        const int64_t cycles = begin(jobs_.front().job);
        busy_ += static_cast<uint64_t>(cycles);
        machine_.schedule(time + cycles, *this, ++generation_);
    }

    void signal_end(int64_t time) {
        if (events_ != nullptr)
            events_->signal(event_, time);
    }

    void clear(bool registers) {
        ++generation_;
        for (const Queued &queued : jobs_)
            if (queued.transfer != no_transfer)
                machine_.transfer_done(queued.transfer, machine_.now());
        jobs_.clear();
        for (Context &context : contexts_)
            context = registers ? Context{} : Context{.registers = context.registers};
        running_ = acquired_ = false;
        next_job_ = finished_ = 0;
        forget();
    }

    Device *events_;
    uint32_t event_;
    uint32_t thread_; // see Checks::add_thread
    int64_t start_cycles_;

    std::array<Context, Contexts> contexts_{};
    std::deque<Queued> jobs_; // the first one runs, or waits for a trigger
    bool running_ = false;
    bool acquired_ = false;
    uint32_t next_job_ = 0;   // number of the job that is offered next
    uint32_t finished_ = 0;   // jobs since all was cleared
    uint32_t generation_ = 0; // scheduled events of earlier ones no longer hold
    uint64_t computed_ = 0, busy_ = 0;
};

} // namespace tilewright
