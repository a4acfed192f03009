// A HyperBus controller behind a micro-DMA: copies between a memory of the machine and one outside of it.
#pragma once

#include "machine/device.h"

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

namespace tilewright {

struct Memory;

// Settings: memory (the one outside), channels and common (offsets of their registers), clock_bit (of the clock
// enables, the register at 0), queue (transfers per id), where somebody listens events (a device) and event (line of
// the first id's reads; then its writes, then those of the second id), and times: clock_numerator and
// clock_denominator (cycles of the machine for one of the system clock), read_start, row (machine cycles for a
// transfer from outside, for each row), byte (machine cycles for 4 bytes from outside), write_start and write_word
// (system cycles to outside, for 4 bytes).
class UdmaHyper final : public Device {
  public:
    UdmaHyper(Machine &machine, const std::string &name, const Settings &settings);
    Reply access(const Access &access) override;
    void happen(uint32_t tag) override;
    std::map<std::string, uint64_t> statistics() const override;

  private:
    static constexpr uint32_t ids = 2, registers = 16, common_registers = 16;
    struct Request {
        uint32_t id;
        bool read; // from outside
        uint32_t address, size, outer;
        uint32_t outer_row = 0, outer_stride = 0; // a row of 0: all in one
        uint32_t row = 0, stride = 0;
        int64_t asked = 0;
        uint32_t hart = 0;
        uint32_t pc = 0;
        uint32_t transfer = 0;
    };
    struct Channel {
        std::array<uint32_t, registers> values{};
        uint32_t waiting = 0;                             // requests that have not started
        std::deque<uint32_t> transfers;                   // those that have not started or ended, and the last that has
        std::deque<std::pair<uint32_t, Request>> blocked; // harts that wait for room, with what they ask for
    };

    Reply channel_register(uint32_t id, uint32_t number, const Access &access);
    Reply ask(uint32_t id, bool read, const Access &access);
    bool describe(Request &request);
    void enqueue(Request request, int64_t time);
    void start_next(int64_t time);
    int64_t cycles(const Request &request) const;
    void copy(const Request &request);
    uint32_t status(uint32_t id, const Hart &hart);
    uint32_t rows(const Request &request) const;

    Memory &outer_;
    uint32_t thread_; // see Checks::add_thread
    uint32_t channels_at_, common_at_;
    uint32_t clock_bit_;
    uint32_t queue_;
    Device *events_ = nullptr;
    uint32_t first_line_ = 0;
    int64_t clock_numerator_, clock_denominator_;
    int64_t read_start_, read_word_, row_, write_start_, write_word_;

    std::map<uint32_t, uint32_t> others_; // registers that do nothing here
    uint32_t clocks_ = 0;
    std::array<Channel, ids> channels_{};
    std::array<uint32_t, common_registers> common_{};
    std::deque<Request> queued_;
    std::optional<Request> running_;
    int64_t running_since_ = 0;
    uint64_t transfers_ = 0, bytes_read_ = 0, bytes_written_ = 0, busy_ = 0;
};

} // namespace tilewright
