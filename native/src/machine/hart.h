// The state of one hart, and what harts of one kind share.
#pragma once

#include "isa/decode.h"
#include "isa/op.h"
#include "machine/fetch.h"
#include "machine/memory.h"
#include "machine/units.h"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tilewright {

class Device;
struct Hart;
class Tiles;

// Decoded instructions of one memory, for one kind of hart.
struct Code {
    uint32_t base = 0;
    uint32_t size = 0;       // bytes
    Op *ops = nullptr;       // one per halfword and one more, then as many trampolines for the ends of hardware loops
    uint32_t first_line = 0; // of its cache lines among those of all memories
    const Memory *memory = nullptr;
    // Cycles spent at each halfword, where a profile is wanted.
    std::unique_ptr<uint64_t[]> profile;

    // From an instruction to its trampoline.
    int32_t trampoline_distance() const { return static_cast<int32_t>(size / 2 + 1); }
    uint32_t pc_of(const Op *op) const { return base + static_cast<uint32_t>(op - ops) * 2; }
};

// A hardware loop: after the instruction at `end`, execution goes on at `start` while `count` is over 1.
struct HardwareLoop {
    uint32_t start = 0;
    uint32_t end = 1; // odd: no instruction is there
    uint32_t count = 0;
    // The same, decoded.
    const Op *first = nullptr;  // the instruction at `start`
    const Op *behind = nullptr; // the trampoline behind the one at `end`
    uint32_t stall = 0;         // of the first instruction, when it reads a result of the last one
};

// What a hart did and why it lost cycles; the rest of the time went into instructions of several cycles.
struct Counters {
    // Those of most instructions come first, so that they share a cache line of the host.
    uint64_t instructions = 0;
    uint64_t loads = 0;
    uint64_t stores = 0;
    uint64_t branches = 0;
    uint64_t taken = 0;
    uint64_t stall_use = 0;    // an instruction waited for the result of the one before
    uint64_t stall_bank = 0;   // another access to the same bank
    uint64_t stall_memory = 0; // latency of memories further away, and of devices
    uint64_t jumps = 0;
    uint64_t far_loads = 0; // of memories that are not next to the hart, and of devices
    uint64_t far_stores = 0;
    uint64_t stall_far_loads = 0;
    uint64_t stall_far_stores = 0;
    uint64_t stall_unit = 0;       // another hart's operation in a unit that it shares
    uint64_t stall_misaligned = 0; // the second half of a misaligned access
    uint64_t stall_fetch = 0;      // instruction cache misses
    uint64_t fetch_misses = 0;
    uint64_t asleep = 0; // waiting for an event
};

struct HartGroup;

// Counters that a program can switch on and off; see performance.cpp.
struct PerformanceCounters {
    static constexpr size_t events_known = 17;
    uint32_t events = 3;                       // which of them count
    uint32_t mode = 0;                         // bit 0: whether they do
    std::array<uint64_t, events_known> base{}; // what was seen when a counter stood at 0, or its value while it stands

    bool counts(uint32_t event) const { return (mode & 1) != 0 && ((events >> event) & 1) != 0; }
    uint64_t value(uint32_t event, uint64_t seen) const;
    void set(uint32_t event, uint64_t seen, uint64_t value);
};

constexpr uint32_t no_reservation = 1; // odd: no word is there

// What a load or store needs of the memory next to a hart.
struct NearView {
    uint32_t base = 0;
    uint32_t size = 0;
    uint8_t *data = nullptr;
    Memory *memory = nullptr;
    uint32_t *reads = nullptr, *writes = nullptr; // of the memory, for checks
    int64_t *bank_free = nullptr;                 // null: conflicts are not modelled
    uint32_t bank_mask = 0;
    uint32_t bank_shift = 2;         // bytes of a bank's words, as a power of two
    BankSlots *bank_slots = nullptr; // of harts with a scoreboard
    Tiles *tiles = nullptr;          // in which the memory lies, where it is not the same to all harts
};

enum class Outcome : uint8_t { done, asleep, fault };
enum class HartState : uint8_t { off, running, asleep };

// Whoever goes on in a cycle: a hart, or a unit beside one.
struct Scheduled {
    Scheduled *next_in_slot = nullptr;
    uint32_t turn = 0; // the higher, the earlier in a cycle; see Schedule
    bool is_hart = true;
};

// What harts of a kind have besides: registers, queues and units of their own, which a device makes for them.
class HartExtension : public Scheduled {
  public:
    HartExtension() { is_hart = false; }
    virtual ~HartExtension() = default;
    // Goes on, and units of the same kind behind it, until a hart or a device is next, or the cycle `until`.
    virtual void go_on(int64_t until) = 0;
    // A floating-point instruction of the hart; `operand` is its integer register or address. `time` is moved on where
    // the hart has to wait. A hart that falls asleep executes the instruction again when it is woken.
    virtual Outcome offload(const Op *op, uint32_t operand, int64_t &time) = 0;
    // Whether offloaded instructions wait in a queue, so that others may see when they come.
    virtual bool is_queueing() const = 0;
    // Whether accesses to memory are among them, and before the hart itself touches memory then: accesses to the same
    // word happen in the order of the program.
    bool holds_accesses() const { return accesses_ != 0; }
    virtual Outcome before_access(uint32_t address) = 0;
    // An instruction that only such harts have, with its operands.
    virtual Outcome special(const Op *op, uint32_t first, uint32_t second, uint32_t &result, int64_t &time) = 0;
    // Before a control register is read or written.
    virtual Outcome before_csr(const Op *op, uint32_t number, int64_t &time) = 0;
    virtual bool read_csr(uint32_t number, uint32_t &value) const = 0;
    virtual bool write_csr(uint32_t number, uint32_t value, int64_t time) = 0;

  protected:
    uint32_t accesses_ = 0;
};

// What most instructions use comes first, so that going from hart to hart touches few cache lines of the host.
struct alignas(64) Hart : Scheduled {
    const Op *op = nullptr;
    int64_t time = 0;       // of the next instruction, in cycles of the hart's own clock
    uintptr_t line = 0;     // cache line of the last instruction
    uint32_t pending = 0;   // cycles of `time` in which only a result was waited for
    uint32_t interrupt = 0; // pending requests
    const NearView *near = nullptr;
    HartGroup *group = nullptr;
    Code *code = nullptr;
    uint64_t *fetched = nullptr; // lines in its own instruction cache: its words of the group's
    uint64_t fetched_bit = 0;    // and its bit in each
    int64_t port_free = 0;       // first cycle in which its port to the memory next to it takes another access
    uint32_t load_place = 0;     // of the next one in `loads_end`
    uint32_t index = 0;          // among all harts
    int64_t stood_back = -1;     // when it last let others go first to a unit that they share
    std::unique_ptr<HartExtension> extension;
    uint64_t suspects = 0; // registers with bytes that were never written, as bits; floating-point ones above
    Counters counters;
    alignas(64) std::array<uint32_t, 33> x{}; // the last one takes writes of x0
    HartState state = HartState::off;
    uint8_t elw_register = nowhere;
    bool stores_unwritten = false; // the next store is of a register with bytes that were never written
    // With a scoreboard: the cycle from which each integer register can be used, and loads that are under way.
    alignas(64) std::array<int64_t, 33> ready{};
    static constexpr uint32_t most_loads = 16;
    alignas(64) std::array<int64_t, most_loads> loads_end{};
    std::array<uint64_t, 33> f{}; // the last one stands for operands that an instruction does not have
    std::array<HardwareLoop, 2> loops{};
    uint32_t pulses = 0;            // wake-ups that came while it was awake
    const Op *stopped_at = nullptr; // the breakpoint that it goes on from
    const Op *marked_at = nullptr;  // the place that it is at, where that is known already
    uint32_t id = 0;                // mhartid
    uint32_t fcsr = 0;
    uint32_t mstatus = 0, mie = 0, mtvec = 0, mscratch = 0, mepc = 0, mcause = 0, mtval = 0;
    PerformanceCounters performance;
    int64_t cycle_base = 0; // what a write of mcycle left behind
    int64_t instruction_base = 0;
    int64_t started = 0;
    uint32_t reservation = no_reservation; // of lr.w
    const Op *missed = nullptr;            // the last instruction that was not in the cache, and when it was asked for
    int64_t missed_at = 0;
    // For checks.
    uint32_t epoch = 0;     // see checks/order.h
    uint32_t frame = 0;     // see checks/places.h
    uint32_t stack_low = 0; // end of its stack; 0: not known
    // The unit for each kind of instruction; null where the hart has one for itself.
    std::array<SharedUnit *, static_cast<size_t>(Timing::count)> units{};
};

// Asks the host for what a hart needs first, while another one still runs.
inline void prefetch(const Scheduled *next) {
    constexpr size_t line = 64, lines = 14; // up to the first loads under way
    for (size_t i = 0; i < lines && next != nullptr; ++i)
        __builtin_prefetch(reinterpret_cast<const char *>(next) + i * line);
}

// Where execution goes on at a trampoline, and the stall there for a result of the last instruction. The loop with the
// lower number is the inner one.
inline const Op *loop_back(Hart &hart, const Op *trampoline, uint32_t &stall) {
    for (HardwareLoop &loop : hart.loops) {
        if (loop.behind != trampoline)
            continue;
        if (loop.count > 1) [[likely]] {
            --loop.count;
            stall = loop.stall;
            return loop.first;
        }
        loop.count = 0;
    }
    stall = trampoline->stall;
    return trampoline + trampoline->next;
}

// Cycles of a division beyond the row's own, which is the count of the divisor's leading zeros.
struct DivideTiming {
    int32_t signed_zero = 0;
    int32_t unsigned_zero = 0;
    int32_t negative = 0; // added for a negative divisor
    // Takes the leading zeros that the divisor has more than the dividend, instead of all of them.
    bool by_difference = false;
};

// Causes of traps, as in mcause.
constexpr uint32_t cause_illegal = 2, cause_ebreak = 3, cause_load_misaligned = 4, cause_store_misaligned = 6,
                   cause_ecall = 11, cause_interrupt = 0x80000000;

constexpr uint32_t mstatus_mie = 1u << 3;
constexpr uint32_t mstatus_mpie = 1u << 7;

// Harts of one kind: the same instructions, pipeline, caches and way to the memories.
struct HartGroup {
    std::string name;
    uint32_t first = 0; // index of its first hart
    uint32_t count = 0;
    std::unique_ptr<Decoder> decoder;
    std::unique_ptr<FetchCaches> caches;
    PipelineTiming pipeline;
    DivideTiming divide;
    bool has_float = false;
    uint32_t misa = 0;
    uint32_t outstanding_loads = 0; // of each hart with a scoreboard; 0: any number. With paths of stores, too
    std::unique_ptr<Tiles> tiles;   // in which the memory next to them lies
    uint32_t line_shift = 3;        // halfwords of a line of its caches, as a power of two
    bool early_counters = false;    // cycle counters are read before the wait for the instruction itself
    std::vector<Code> code;         // one for each memory that may hold instructions
    Pages fetched;                  // by line of the code: which harts have it in their cache, as bits
    uint32_t fetched_words = 1;     // for each line
    Memory *near = nullptr;         // the memory at one cycle, without a search
    bool near_banks = false;        // whether conflicts in its banks are modelled
    NearView view;                  // of that memory
    std::deque<SharedUnit> units;   // that harts share
    Device *interrupts = nullptr;   // who asks for interrupts, and hears when one is taken
    // Machine time = own time * numerator / denominator.
    int64_t clock_numerator = 1;
    int64_t clock_denominator = 1;
    std::vector<uint32_t> memory_cycles;   // of a load or store, by memory
    std::vector<uint32_t> device_cycles;   // by device
    std::map<std::string, int64_t> cycles; // the same by name, as described; "devices" is that of all others

    bool same_clock() const { return clock_numerator == clock_denominator; }
    // Time of the machine in cycles of these harts, and back.
    int64_t own_time(int64_t machine_time) const {
        return same_clock() ? machine_time : scaled(machine_time, clock_denominator, clock_numerator);
    }
    int64_t machine_time(int64_t own_time) const {
        return same_clock() ? own_time : scaled(own_time, clock_numerator, clock_denominator);
    }
    static int64_t scaled(int64_t time, int64_t numerator, int64_t denominator);

    uint32_t cycles_to(const std::string &place) const {
        const auto found = cycles.find(place);
        return static_cast<uint32_t>(found != cycles.end() ? found->second : cycles.at("devices"));
    }
};

} // namespace tilewright
