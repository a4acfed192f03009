// A machine that tells on programs: reads of memory never written, races with transfers in flight, and the like.
#pragma once

#include "checks/shadow.h"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tilewright {

struct Hart;
struct Op;

enum class Check : uint8_t {
    uninitialised_read, // of bytes that nothing ever wrote
    unused_read,        // the same, but the value was only copied or dropped
    race,               // an access to bytes of a transfer whose end no hart has seen
    overlap,            // two such transfers on the same bytes
    stack_overflow,
    unaligned_transfer,
    double_free, // of a transfer's counter
    count
};
const char *name_of(Check check);
// Warnings are of programs that work: slow transfers, reads without consequences.
bool is_warning(Check check);

// What a device does on its own: a DMA transfer, a job of an accelerator.
struct Transfer {
    std::string what;  // in words, for people
    std::string lane;  // row of a trace
    uint32_t hart = 0; // that asked for it
    uint32_t pc = 0;
    int64_t started = 0; // asked for: from then on, its bytes are its own
    uint64_t bytes = 0;
    // Addresses in memories. A copy moves the bytes of `reads` to those of `writes`, in this order; anything else uses
    // what it reads. What lies in no memory of the machine (behind a peripheral) is left out.
    std::vector<Range> reads{};
    std::vector<Range> writes{};
    bool copies = true;
    bool in_order = false; // does not begin before the one asked for earlier in the same lane has ended
    uint32_t events = 0;   // lines of the event unit that may tell of its end, as bits
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

struct Finding {
    Check check{};
    std::string message;
    uint32_t hart = 0; // the first that did it
    uint32_t pc = 0;
    uint32_t address = 0;
    int64_t time = 0;
    uint64_t count = 0; // how often at this instruction
    std::optional<TransferRecord> transfer{};
    std::optional<Range> range{}; // of the transfer's bytes, that holds the address
};

// A load or store of a hart in a memory.
struct HartAccess {
    Hart &hart;
    const Op &op;
    uint32_t pc;
    uint32_t where;   // as the program writes it
    uint32_t address; // without aliases
    uint32_t size;
    int64_t time; // of the machine
    uint8_t *shadow;
};

constexpr uint32_t no_transfer = 0;

class Checks {
  public:
    explicit Checks(const std::vector<std::unique_ptr<Memory>> &memories) : shadow_(memories) {}

    void switch_on(bool on) { on_ = on; }
    bool on() const { return on_; }
    void record_transfers(bool recording) { recording_ = recording; }
    // Whether anybody wants to know of transfers; otherwise devices need not describe them.
    bool wants_transfers() const { return on_ || recording_; }

    uint32_t started(Transfer transfer);
    void done(uint32_t id, int64_t time);
    void observed(uint32_t id);
    // Every transfer that has ended and tells of it on one of these lines.
    void event_observed(uint32_t lines);

    void written_from_outside(const Range &range) { shadow_.set(range, byte_written); }
    void check_load(const HartAccess &access);
    // Also notes that the bytes are written.
    void check_store(const HartAccess &access);
    void check_device_store(Hart &hart, const Op &op);
    // Called before an instruction while registers of its hart hold bytes that were never written.
    void check_registers(Hart &hart, const Op &op);

    void report(Check check, std::string message, uint32_t hart, uint32_t pc, uint32_t address, int64_t time,
                uint32_t transfer = no_transfer);

    // Includes values still in registers at this moment.
    const std::vector<Finding> &findings(std::vector<Hart> &harts);
    uint64_t findings_left_out() const { return findings_left_out_; }
    const std::vector<TransferRecord> &transfers() const { return records_; }
    uint64_t transfers_left_out() const { return transfers_left_out_; }

  private:
    static constexpr size_t most_findings = 100; // of a kind
    static constexpr size_t most_records = 1 << 20;
    static constexpr size_t most_active = 128;
    static constexpr size_t not_recorded = ~size_t{0};

    // A transfer until its end was seen.
    struct Active {
        uint32_t id;
        Transfer transfer;
        int64_t finished; // -1: not yet
        size_t record;
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

    std::vector<Active>::iterator find(uint32_t id);
    static TransferRecord record_of(const Active &active);
    void claim(const Transfer &transfer);
    void unclaim(const Transfer &transfer);
    // Gives back the bytes of transfers whose end was seen.
    void release_if(const std::function<bool(const Active &)> &over);
    void forget_oldest();
    // Whether a transfer only begins when the other one has ended.
    static bool goes_after(const Transfer &transfer, const Transfer &other);
    // What an active transfer does with bytes, as the end of a message.
    static std::string said_of(const Active &active, bool writes);
    static bool holds(const std::vector<Range> &ranges, uint32_t address);
    void check_overlap(const Active &active);
    void report_overlap(const Active &active, uint32_t address, bool writes);
    // Counts a finding that was there before.
    bool found_again(Check check, uint32_t hart, uint32_t pc);
    void report_race(const HartAccess &access, bool store);
    void check_stack(const HartAccess &access, bool store);
    void suspect(const HartAccess &access);
    // A register gets another value.
    void drop(Hart &hart, uint32_t number);
    void report_suspect(Hart &hart, uint32_t number, Check check, const char *does);

    Shadow shadow_;
    bool on_ = false;
    bool recording_ = false;
    uint32_t last_id_ = no_transfer;
    std::vector<Active> active_;
    std::vector<TransferRecord> records_;
    uint64_t transfers_left_out_ = 0;
    std::vector<std::array<Suspect, 64>> suspects_; // by hart and register
    std::vector<Finding> findings_;
    std::array<size_t, static_cast<size_t>(Check::count)> kept_{};
    uint64_t findings_left_out_ = 0;
};

} // namespace tilewright
