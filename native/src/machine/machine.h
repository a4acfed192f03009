// A machine: harts, memories and devices, and the loop that runs them in the order of time.
#pragma once

#include "checks/checks.h"
#include "machine/device.h"
#include "machine/hart.h"
#include "machine/marks.h"
#include "machine/memory.h"
#include "machine/schedule.h"
#include "machine/tiles.h"
#include "machine/trace.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tilewright {

enum class Stop : uint8_t { cycle_limit, exited, fault, deadlock, breakpoint };

// Why a machine cannot go on.
struct Fault {
    std::string kind;
    std::string message;
    uint32_t hart = 0;
    uint32_t pc = 0;
    uint32_t address = 0;
    int64_t time = 0;
};

enum class AccessKind : uint8_t { load, store, event_load };

// A description of a group of harts; see HartGroup.
struct GroupDescription {
    std::string name;
    uint32_t count = 0;
    uint32_t first_id = 0;
    std::vector<std::string> extensions;
    PipelineTiming pipeline;
    DivideTiming divide;
    std::string near;
    bool near_banks = false;
    uint32_t outstanding_loads = 0;
    bool early_counters = false;
    int64_t clock_numerator = 1;
    int64_t clock_denominator = 1;
    std::optional<TilesDescription> tiles; // in which the memory next to them lies
    FetchTiming fetch;
    std::map<std::string, int64_t> cycles; // of a load or store, by memory or device
};

class Machine {
  public:
    Machine() = default;
    Machine(const Machine &) = delete;
    Machine &operator=(const Machine &) = delete;

    // Description. Memories come first, then harts, then devices.
    void add_memory(const std::string &name, uint32_t base, uint32_t size, uint32_t banks, bool executable,
                    uint32_t bank_bytes);
    // A memory that only devices reach.
    void add_outer_memory(const std::string &name, uint32_t size, uint8_t fill);
    void add_alias(const std::string &memory, uint32_t base, uint32_t size, bool test_and_set,
                   const std::string &group);
    void add_harts(const GroupDescription &description);
    // Units for kinds of instructions, by the names of `timing_names`, that take an operation every `cycles`: hart i of
    // a group uses number i modulo `count`.
    void add_units(const std::string &group, const std::vector<std::string> &instructions, uint32_t count,
                   int64_t cycles, bool round_robin);
    Device &add_device(const std::string &kind, const std::string &name, uint32_t base, uint32_t size,
                       std::map<std::string, Setting> settings);

    // A range of addresses that shows registers of a device, those at `offset` first. Its name is for the cycles of
    // accesses: a device may have a slow port and a fast one.
    void add_window(const std::string &name, const std::string &device, uint32_t base, uint32_t size, uint32_t offset);

    // Running.
    void start(uint32_t hart, uint32_t pc, int64_t time);
    Stop run(int64_t until);
    // One instruction of one hart, as soon as it is its turn; others go on until then.
    Stop step(uint32_t hart);
    int64_t now() const { return std::max(schedule_.now(), ended_); }
    std::optional<Fault> fault() const { return fault_; }
    uint32_t exit_code() const { return exit_code_; }
    std::string take_output();

    // For devices.
    void schedule(int64_t time, Device &device, uint32_t tag) { schedule_.push(time, &device, tag); }
    // Ends the sleep of a hart in an event load, which gives `value`.
    void wake(Hart &hart, int64_t time, uint32_t value);
    // Wakes a hart that waits for an interrupt, or makes its next wait none; a few such pulses are remembered. Harts that
    // are woken together keep their order.
    void pulse(Hart &hart, int64_t time);
    // Sets the interrupts that a device asks for. True where that takes the hart out of an event load, which it will
    // execute again after the handler.
    bool set_interrupts(Hart &hart, uint32_t lines, int64_t time);
    // Lets a hart go on that fell asleep in an instruction, which it executes again.
    void resume(Hart &hart, int64_t time);
    void schedule(int64_t time, Scheduled &unit) { schedule_.push(unit, time); }
    Schedule &times() { return schedule_; }
    bool is_stopping() const { return stopping_; }
    // Where a program asks its host for something and gets its answer: see host.cpp.
    void talk_to_host(uint32_t to_host, uint32_t from_host);
    // For units beside harts: a load or store that is not an aligned one of the memory next to the hart. `time` is the
    // hart's, moved on by waits. Checks of one in memory; `where` is the program's address.
    Outcome access(Hart &hart, const Op *op, uint32_t address, uint32_t size, AccessKind kind, uint64_t &value,
                   int64_t &time);
    void check(Hart &hart, const Op *op, uint32_t where, Memory &memory, uint32_t offset, uint32_t size,
               AccessKind kind, int64_t time);
    Outcome fail(Hart &hart, const Op *op, const char *kind, std::string message, uint32_t address);
    void print(char character) { output_.push_back(character); }
    void exit(uint32_t code, const Hart &hart, uint32_t pc, int64_t time);
    Device *device(const std::string &name);
    Memory *memory(const std::string &name);
    // The same, where there must be one.
    Device &needed_device(const std::string &name);
    Memory &needed_memory(const std::string &name);
    // The ways to a memory that lies in tiles.
    Tiles &tiles_of(const Memory &memory);
    void enable_caches(uint32_t group, bool enabled);
    void forget_code();
    void stop_with(Fault fault);

    // For devices: what they do on their own, and misuse of them. `pc` is that of the instruction which did it.
    bool wants_transfers() const { return checks_.wants_transfers(); }
    uint32_t transfer_started(Transfer transfer) { return checks_.started(std::move(transfer)); }
    void transfer_done(uint32_t id, int64_t time) { checks_.done(id, time); }
    void report(Check check, std::string message, const Hart &hart, uint32_t pc, uint32_t address,
                uint32_t transfer = no_transfer) {
        checks_.report(check, std::move(message), hart, pc, address, now(), transfer);
    }

    // For the outside. Checks are switched on before the first run; they cannot know what was written before.
    void observe_checks(bool on) {
        checks_.switch_on(on);
        look_at_harts();
    }
    // Cycles by instruction: Code::profile.
    void record_profile(bool on);
    void record_trace(size_t most, std::vector<uint32_t> functions);
    Trace &recorded_trace() { return trace_; }
    // Runs end before an instruction at one of these addresses; the hart is `stopped_hart`.
    void break_at(const std::vector<uint32_t> &addresses);
    uint32_t stopped_hart() const { return stopped_hart_; }
    // Remembers when a hart comes to one of these addresses.
    void mark(uint32_t hart, const std::vector<uint32_t> &addresses);
    std::vector<Passage> take_passages() { return std::exchange(passages_, {}); }
    Checks &checks() { return checks_; }
    std::span<uint8_t> bytes(uint32_t address, uint32_t size);
    std::vector<Hart> &harts() { return harts_; }
    std::vector<std::unique_ptr<HartGroup>> &groups() { return groups_; }
    const std::vector<std::unique_ptr<Memory>> &memories() const { return memories_; }
    const std::vector<std::unique_ptr<Device>> &devices() const { return devices_; }
    uint32_t pc_of(const Hart &hart) const { return hart.code ? hart.code->pc_of(hart.op) : 0; }

  private:
    struct DeviceRange {
        uint32_t base;
        uint32_t size;
        Device *device;
        uint32_t offset; // of the register at its base
    };

    // Of each kind one for speed, and one that observes; those with a scoreboard let results come late.
    template <bool Observed, bool Scoreboard> Stop run_harts(int64_t until);
    Stop run_kind(bool observed, int64_t until);
    Outcome access_anywhere(Hart &hart, const Op *op, uint32_t address, uint32_t size, AccessKind kind, uint64_t &value,
                            int64_t &time);
    Outcome access_memory(Hart &hart, Memory &memory, uint32_t offset, uint32_t size, AccessKind kind, uint64_t &value,
                          int64_t &time);
    Outcome access_device(Hart &hart, const Op *op, const DeviceRange &range, size_t index, const Access &request,
                          uint64_t &value, int64_t &time);
    const Alias *alias_of(const Hart &hart, uint32_t address) const;
    // Reservations of lr.w. `release` says whether the hart still held that word.
    void reserve(Hart &hart, uint32_t address);
    bool release(Hart &hart, uint32_t address);
    void break_reservations(const Hart &by, uint32_t address, uint32_t size);
    // An atomic instruction makes the word a flag by which harts tell each other.
    void check_atomic(const Hart &hart, uint32_t address);
    void check_registers(Hart &hart, const Op *op);
    void ask_host(const Hart &hart, const Op *op, uint32_t request, int64_t time);
    const Op *instruction_at(Hart &hart, uint32_t address);
    // The decoded instructions of the memory at an address; an alias's address becomes that of its memory.
    Code *code_at(Hart &hart, uint32_t &address);
    static void decode(const HartGroup &group, const Code &code, const Op *op);
    void set_loop(Hart &hart, uint32_t index, uint32_t start, uint32_t end, uint32_t count) {
        HardwareLoop &loop = hart.loops[index];
        loop.count = count;
        // Inner loops are set up again and again.
        if (loop.start != start || loop.end != end || loop.behind == nullptr) [[unlikely]]
            move_loop(hart, loop, start, end);
    }
    void move_loop(Hart &hart, HardwareLoop &loop, uint32_t start, uint32_t end);
    // Moves on from the instruction in which a hart slept.
    static void go_on(Hart &hart);
    static bool is_fetched(const Hart &hart, const Op *op) {
        return (fetched_word(hart, line_of(hart, op)) & fetched_word(hart, line_of(hart, op + 1)) & hart.fetched_bit) !=
               0;
    }
    static uint64_t &fetched_word(const Hart &hart, uint32_t line) {
        return hart.fetched[size_t{line} * hart.group->fetched_words];
    }
    // Number of an instruction's cache line among those of all memories.
    static uint32_t line_of(const Hart &hart, const Op *op) {
        return hart.code->first_line + (static_cast<uint32_t>(op - hart.code->ops) >> hart.group->line_shift);
    }
    int64_t fetch_line(Hart &hart, const Op *op, int64_t time);
    bool read_csr(Hart &hart, uint32_t number, int64_t time, uint32_t &value);
    bool read_performance(const Hart &hart, uint32_t number, int64_t time, uint32_t &value) const;
    bool write_performance(Hart &hart, uint32_t number, int64_t time, uint32_t value);
    bool write_csr(Hart &hart, uint32_t number, int64_t time, uint32_t value);
    // Where a trap leads; null, and a fault, where no handler was set.
    const Op *trap(Hart &hart, const Op *op, uint32_t cause, uint32_t value);
    void fail_trap(Hart &hart, const Op *op, uint32_t cause);
    const Op *enter_interrupt(Hart &hart, const Op *op);
    static void leave_trap(Hart &hart);
    // For the interpreter: an instruction took some cycles up to `time`; `next` follows where it was executed.
    void observe(Hart &hart, const Op *op, const Op *next, int64_t time, int64_t cycles);
    void trace_jump(const Hart &hart, const Op &op, const Op *next, int64_t time);
    void trace(const Hart &hart, TraceKind kind, uint32_t pc, int64_t time);
    bool stops_at(Hart &hart, const Op *op);
    void pass(Hart &hart, const Op *op, int64_t time, uint64_t retired);
    void look_at_harts();
    void happen(const Event &event);

    std::vector<std::unique_ptr<Memory>> memories_;
    std::vector<std::unique_ptr<Memory>> outer_memories_;
    std::vector<Alias> aliases_;
    std::vector<Hart> harts_;
    std::vector<std::unique_ptr<HartGroup>> groups_;
    std::vector<Pages> code_pages_;
    std::vector<std::unique_ptr<Device>> devices_;
    std::vector<DeviceRange> ranges_;
    void count_reservations(int change);

    uint32_t reservations_ = 0; // harts that hold one
    Schedule schedule_;
    uint32_t turns_ = 0; // how often harts were woken
    Checks checks_{memories_, harts_};
    std::string output_;
    std::optional<Fault> fault_;
    bool exited_ = false;
    int64_t ended_ = 0;     // when it did: a hart alone may be ahead of the schedule
    bool stopping_ = false; // exited or failed
    uint32_t exit_code_ = 0;
    bool observed_ = false;
    bool following_ = false; // every instruction, for a profile or a trace
    bool profiling_ = false;
    bool scoreboard_ = false;              // whether any hart has one
    uint32_t to_host_ = 0, from_host_ = 0; // 0: there is no such host
    Trace trace_;
    Marks breakpoints_;
    std::vector<Marks> marks_; // by hart; none where nobody asked
    std::vector<Passage> passages_;
    static constexpr uint32_t nobody = ~0u;
    uint32_t stepping_ = nobody; // the hart whose next instruction ends the run
    uint32_t stopped_hart_ = nobody;
};

} // namespace tilewright
