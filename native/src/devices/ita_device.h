// ITA as cores of a cluster see it: registers of four jobs, each a product of two tiles, which run one after the other,
// and an event at the end of each.
#pragma once

#include "devices/ita.h"
#include "machine/device.h"

#include <array>
#include <cstdint>
#include <deque>

namespace tilewright {

struct Memory;

// Settings: memory (name), start_cycles (from a trigger to the first cycle of the job), all names of ItaTiming and,
// where there is one, events (the event unit) with event (line).
class ItaDevice final : public Device {
  public:
    ItaDevice(Machine &machine, const std::string &name, const Settings &settings);
    Reply access(const Access &access) override;
    void happen(uint32_t tag) override;
    std::map<std::string, uint64_t> statistics() const override;

  private:
    static constexpr uint32_t contexts = 4;
    struct Queued {
        uint32_t number;
        ItaJob job;
        int64_t triggered;
        uint32_t hart;
        uint32_t pc;
        uint32_t transfer;
    };
    struct Context {
        ItaRegisters registers{};
        bool busy = false;
        uint32_t transfer = 0; // of its last job
    };

    Reply access_job(const Access &access);
    void fail(const Access &access, const std::string &message, uint32_t address);
    uint32_t acquire(const Hart &hart);
    uint32_t status(const Hart &hart);
    void observe_ends(const Hart &hart);
    void observe_end(const Hart &hart, const Context &context);
    void trigger(const Access &access);
    void describe(Queued &queued);
    void start(int64_t time);
    void clear(bool registers);
    void signal_end(int64_t time);
    Context &offered() { return contexts_[next_job_ % contexts]; }

    Memory &memory_;
    Device *events_;
    uint32_t event_;
    uint32_t thread_; // see Checks::add_thread
    int64_t start_cycles_;
    ItaTiming timing_;
    ItaEngine engine_;

    std::array<Context, contexts> contexts_{};
    std::deque<Queued> jobs_; // the first one runs, or waits for a trigger
    bool running_ = false;
    bool acquired_ = false;
    uint32_t next_job_ = 0;   // number of the job that is offered next
    uint32_t finished_ = 0;   // jobs
    uint32_t generation_ = 0; // scheduled events of earlier ones no longer hold
    uint64_t busy_ = 0, accesses_ = 0;
};

} // namespace tilewright
