// A machine that tells on programs: reads of memory never written, races with transfers in flight, and the like.
#pragma once

#include "checks/order.h"
#include "checks/places.h"
#include "checks/shadow.h"

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace tilewright {

struct Hart;
struct Op;

enum class Check : uint8_t {
    uninitialised_read, // of bytes that nothing ever wrote
    unused_read,        // the same, but the value was only copied or dropped
    race,               // two accesses to the same bytes without an order, one of which writes
    overlap,            // the same of two transfers
    stack_overflow,
    unaligned_transfer,
    double_free, // of a transfer's counter
    stream,      // that never ends, or whose strides the hardware does not have
    unboxed,     // a narrow float that is not boxed in its register, so that it counts as a NaN
    unfenced,    // floating-point stores that may still be under way where harts meet
    count
};
const char *name_of(Check check);
// Warnings are of programs that work: slow transfers, reads without consequences.
bool is_warning(Check check);

// What a device does on its own: a DMA transfer, a job of an accelerator.
struct Transfer {
    std::string what;    // in words, for people
    std::string lane;    // row of a trace
    uint32_t thread = 0; // of its device, see Checks::add_thread
    uint32_t hart = 0;   // that asked for it
    uint32_t pc = 0;
    int64_t started = 0; // asked for: from then on, its bytes are its own
    uint64_t bytes = 0;
    // Addresses in memories. A copy moves the bytes of `reads` to those of `writes`, in this order; anything else uses
    // what it reads. What lies in no memory of the machine (behind a peripheral) is left out.
    std::vector<Range> reads{};
    std::vector<Range> writes{};
    bool copies = true;
    uint32_t events = 0; // lines of the event unit that may tell of its end, as bits
};

// A transfer as a trace shows it.
struct TransferRecord {
    uint32_t id = 0;
    std::string what;
    std::string lane;
    uint32_t hart = 0;
    uint32_t pc = 0;
    int64_t started = 0;
    int64_t finished = -1; // -1: not yet
    uint64_t bytes = 0;
};

// The other access of a race, by a hart.
struct OtherAccess {
    uint32_t hart = 0;
    uint32_t pc = 0; // 0: not known any more
    std::vector<uint32_t> stack{};
};

struct Finding {
    Check check{};
    std::string message;
    uint32_t hart = 0; // the first that did it
    uint32_t pc = 0;
    uint32_t address = 0;
    int64_t time = 0;
    uint64_t count = 0;            // how often at this instruction
    std::vector<uint32_t> stack{}; // calls that led there, the last one first
    std::string missing{};         // what would have put a race in order
    std::optional<TransferRecord> transfer{};
    std::optional<Range> range{}; // of the transfer's bytes, that holds the address
    std::optional<OtherAccess> other{};
};

// A load or store of a hart in a memory.
struct HartAccess {
    Hart &hart;
    const Op &op;
    uint32_t pc;
    uint32_t where; // as the program writes it
    Memory &memory;
    uint32_t offset;
    uint32_t size;
    int64_t time; // of the machine

    uint32_t address() const;
    uint8_t *shadow() const;
};

constexpr uint32_t no_transfer = 0;

// What harts learn of the ends of transfers from an event of a device.
struct EndsTold {
    uint32_t lines = 0; // of the event unit, as bits
    uint64_t until = 0; // ends that came before the event
};

class Checks {
  public:
    Checks(const std::vector<std::unique_ptr<Memory>> &memories, std::vector<Hart> &harts)
        : memories_(memories), harts_(harts), shadow_(memories) {}

    void switch_on(bool on);
    // Not without knowing the flags by which harts tell each other.
    void look_for_races(bool on) { racing_ = on; }
    bool on() const { return on_; }
    void record_transfers(bool recording) { recording_ = recording; }
    // Whether anybody wants to know of transfers; otherwise devices need not describe them.
    bool wants_transfers() const { return on_ || recording_; }

    // A device does things on its own. Those of one thread end together, or (`in_order`) one after the other; `wait`
    // says how a program sees the end.
    uint32_t add_thread(const std::string &device, std::string wait, bool in_order);
    uint32_t started(Transfer transfer);
    void done(uint32_t id, int64_t time);
    uint64_t ends() const { return ends_; }

    // Order among harts: what one has done until it releases is done for those that acquire later.
    void release(const Hart &hart, Clock &clock);
    void acquire(const Hart &hart, const Clock &clock);
    // A word that harts tell each other by: a store releases, a load acquires.
    void add_flag(uint32_t address, uint32_t size);
    void release_flag(const Hart &hart, uint32_t address) { release(hart, flags_[address & ~3u]); }
    void acquire_flag(const Hart &hart, uint32_t address) { acquire(hart, flags_[address & ~3u]); }
    // A hart knows that a transfer has ended, and all before it in the same order.
    void ended(const Hart &hart, uint32_t id);
    // A register that shows the ends of several threads tells which one a hart waited for when there is only one, or
    // when the hart says so by giving the thread back.
    void end_shown(const Hart &hart, uint32_t thread);
    void given_back(const Hart &hart, uint32_t thread);
    void event_seen(const Hart &hart, const EndsTold &told);
    // The program ends: nothing may still be under way.
    void end_of_program(const Hart &hart, uint32_t pc, int64_t time);
    void followed(Hart &hart, const Op &op, uint32_t pc);

    void written_from_outside(const Range &range);
    void check_load(const HartAccess &access);
    // Also notes that the bytes are written.
    void check_store(const HartAccess &access);
    void check_device_store(Hart &hart, const Op &op);
    // Called before an instruction while registers of its hart hold bytes that were never written.
    void check_registers(Hart &hart, const Op &op);

    void report(Check check, std::string message, const Hart &hart, uint32_t pc, uint32_t address, int64_t time,
                uint32_t transfer = no_transfer);

    // Includes values still in registers at this moment.
    const std::vector<Finding> &findings();
    uint64_t findings_left_out() const { return findings_left_out_; }
    const std::vector<TransferRecord> &transfers() const { return records_; }
    uint64_t transfers_left_out() const { return transfers_left_out_; }

  private:
    static constexpr size_t most_findings = 100; // of a kind
    static constexpr size_t most_records = 1 << 20;
    static constexpr size_t most_recent = 256;
    static constexpr size_t not_recorded = ~size_t{0};

    struct Thread {
        std::string device;
        std::string wait;
        bool in_order;
        uint32_t asked = 0; // clock of the last transfer
        uint32_t done = 0;
        Clock last{}; // what the last transfer knows at its end
    };

    // A transfer, for as long as somebody may want to know of it.
    struct Recent {
        uint32_t id;
        Transfer transfer;
        int64_t finished; // -1: not yet
        uint64_t end;     // its number among all ends
        size_t record;
        Epoch epoch;
        Clock clock; // what is done when it has ended
    };

    // A load of bytes that nothing wrote, while its value is in a register.
    struct Suspect {
        uint32_t pc = 0;
        uint32_t address = 0;
        uint32_t size = 0;
        int64_t time = 0;
        bool like_padding = false; // next to written bytes, as gaps in a struct are
        bool reported = false;
    };

    // Who comes to bytes, and what was done there before.
    struct Visit {
        const Clock &clock; // what it knows
        Epoch epoch;        // when it comes
        Memory &memory;
        uint32_t offset;
        uint32_t size;
    };
    struct Conflict {
        Epoch with = no_epoch;
        bool wrote = false;
        uint32_t address = 0;
        uint32_t place = 0; // number, 0: not known
    };

    bool is_hart(uint32_t thread) const { return thread < harts_.size(); }
    Thread &thread_at(uint32_t thread) { return threads_[thread - harts_.size()]; }
    Recent *find(uint32_t id);
    const Recent *find_epoch(Epoch epoch) const;
    static TransferRecord record_of(const Recent &recent);
    void forget_oldest();
    void tick(const Hart &hart);
    // The hart knows of all transfers of a thread up to a clock.
    void join_thread(const Hart &hart, uint32_t thread, uint32_t clock);
    bool only_outstanding(const Hart &hart, uint32_t thread) const;

    // Compares with what was done before, then notes what is done now.
    std::optional<Conflict> read(const Visit &visit, uint32_t place);
    std::optional<Conflict> written(const Visit &visit, uint32_t place);
    void forget_readers();
    bool touches_flag(const HartAccess &access) const;
    void visit(Recent &recent, const Clock &known);
    void report_race(const HartAccess &access, bool store, const Conflict &conflict);
    void report_transfer(const Recent &recent, bool writes, const Conflict &conflict);
    // The rest of a sentence: who did what, and what is missing.
    void explain(Finding &finding, const Conflict &conflict, const std::string &before);
    std::string hart_name(uint32_t hart) const;

    // Counts a finding that was there before.
    bool found_again(Check check, uint32_t hart, uint32_t pc);
    // A new finding, where there is room for one.
    Finding *add(Check check, std::string message, const Hart &hart, uint32_t pc, uint32_t address, int64_t time);
    void describe(Finding &finding, const Recent &recent) const;
    void check_stack(const HartAccess &access, bool store);
    void suspect(const HartAccess &access);
    // A register gets another value.
    void drop(Hart &hart, uint32_t number);
    void report_suspect(Hart &hart, uint32_t number, Check check, const char *does);

    const std::vector<std::unique_ptr<Memory>> &memories_;
    std::vector<Hart> &harts_;
    Shadow shadow_;
    bool on_ = false;
    bool recording_ = false;
    bool racing_ = true;
    std::vector<Clock> clocks_; // by hart
    std::vector<Clock> shown_;  // by hart: ends of threads that it has seen, but perhaps not waited for
    std::vector<Thread> threads_;
    std::map<uint32_t, Clock> flags_; // by address
    Readers readers_;
    Places places_;
    uint32_t last_id_ = no_transfer;
    uint64_t ends_ = 0;
    std::deque<Recent> recent_; // numbers follow each other
    std::vector<TransferRecord> records_;
    uint64_t transfers_left_out_ = 0;
    std::vector<std::array<Suspect, 64>> suspects_; // by hart and register
    std::vector<Finding> findings_;
    std::array<size_t, static_cast<size_t>(Check::count)> kept_{};
    uint64_t findings_left_out_ = 0;
};

} // namespace tilewright
