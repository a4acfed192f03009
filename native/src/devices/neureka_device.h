// NEUREKA as cores see it: registers of two jobs, which run one after the other, and an event at the end of each.
#pragma once

#include "devices/neureka.h"
#include "machine/device.h"

#include <array>
#include <cstdint>
#include <deque>

namespace tilewright {

struct Memory;

// Settings: memory, weight_memory (names; the latter may be left out), events (the event unit) and event (line),
// start_cycles (from a trigger to the first cycle of the job), all names of NeurekaTiming, and, where they differ from
// 0, the quirks by their names.
class NeurekaDevice final : public Device {
  public:
    NeurekaDevice(Machine &machine, const std::string &name, const Settings &settings);
    Reply access(const Access &access) override;
    void happen(uint32_t tag) override;
    std::map<std::string, uint64_t> statistics() const override;

  private:
    static constexpr uint32_t contexts = 2;
    struct Queued {
        uint32_t number;
        NeurekaJob job;
        int64_t triggered;
        uint32_t hart;
        uint32_t pc;
        uint32_t transfer;
    };
    struct Context {
        NeurekaRegisters registers{};
        bool busy = false;
        uint32_t transfer = 0; // of its last job
    };

    uint32_t acquire(const Hart &hart);
    uint32_t status(const Hart &hart);
    void observe_ends(const Hart &hart);
    void observe_end(const Hart &hart, const Context &context);
    void trigger(const Access &access);
    void describe(Queued &queued);
    void start(int64_t time);
    void reset();
    Context &offered() { return contexts_[next_job_ % contexts]; }
    NeurekaMemory memories() const;

    Memory &memory_;
    Memory *weights_;
    Device &events_;
    uint32_t event_;
    uint32_t thread_; // see Checks::add_thread
    int64_t start_cycles_;
    NeurekaTiming timing_;
    NeurekaQuirks quirks_;
    NeurekaPrefetch prefetch_;

    std::array<Context, contexts> contexts_{};
    std::deque<Queued> jobs_; // the first one runs
    bool acquired_ = false;
    uint32_t next_job_ = 0;   // number of the job that is offered next
    uint32_t finished_ = 0;   // jobs
    uint32_t generation_ = 0; // scheduled events of earlier ones no longer hold
    uint64_t busy_ = 0, multiplications_ = 0;
    std::array<uint64_t, neureka_phase_count> phases_{};
};

} // namespace tilewright
