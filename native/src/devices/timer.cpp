// A timer: two counters of 32 bits, or one of 64, that count cycles and compare.
#include "devices/kinds.h"
#include "machine/machine.h"

#include <array>

namespace tilewright {

namespace {

enum : uint32_t {
    reg_config = 0x00,
    reg_value = 0x08,
    reg_compare = 0x10,
    reg_start = 0x18,
    reg_reset = 0x20,
    registers_end = 0x28,
};
enum : uint32_t {
    config_enable = 1u << 0,
    config_reset = 1u << 1,
    config_event = 1u << 2,
    config_restart = 1u << 4, // from 0 when the value to compare with is reached
    config_once = 1u << 5,
    config_prescaler = 1u << 6,
    config_joined = 1u << 31, // both counters are one
};

// Settings: clock_numerator, clock_denominator (cycles of the machine for one of the timer), and, where somebody
// listens, events (a device) with lines event_low and event_high.
class Timer final : public Device {
  public:
    Timer(Machine &machine, const std::string &name, const Settings &settings)
        : Device(machine, name), numerator_(settings.either("clock_numerator", 1)),
          denominator_(settings.either("clock_denominator", 1)) {
        if (settings.has("events")) {
            events_ = &machine.needed_device(settings.text("events"));
            lines_ = {settings.word("event_low"), settings.word("event_high")};
        }
    }

    Reply access(const Access &access) override {
        if (access.offset >= registers_end || access.offset % 4 != 0)
            return {.refused = true};
        const uint32_t which = access.offset / 4 % 2, reg = access.offset & ~7u;
        refresh(0, access.time);
        refresh(1, access.time);
        if (access.write)
            write(which, reg, access.value);
        const Counter &counter = counters_[which];
        if (reg == reg_config)
            return {.value = counter.config};
        if (reg == reg_compare)
            return {.value = counter.compare};
        if (reg == reg_value)
            return {.value = value(which)};
        return {};
    }

    void happen(uint32_t tag) override {
        const uint32_t which = tag & 1;
        Counter &counter = counters_[which];
        if (tag >> 1 != counter.generation)
            return;
        if (events_ != nullptr)
            events_->signal(lines_[which], machine_.now());
        refresh(which, machine_.now());
        if ((counter.config & config_once) != 0)
            counter.config &= ~uint32_t{config_enable};
        if ((counter.config & config_restart) != 0)
            counter.base = 0;
        plan(which);
    }

  private:
    struct Counter {
        uint32_t config = 0;
        uint32_t compare = 0;
        uint64_t base = 0;       // its value at `since`
        int64_t since = 0;       // in cycles of the timer
        uint32_t generation = 0; // scheduled events of earlier ones no longer hold
    };

    bool joined() const { return (counters_[0].config & config_joined) != 0; }
    int64_t ticks(int64_t time) const { return time * denominator_ / numerator_; }
    int64_t machine_time(int64_t ticks) const { return (ticks * numerator_ + denominator_ - 1) / denominator_; }
    static int64_t divider(const Counter &counter) {
        return (counter.config & config_prescaler) != 0 ? 1 + ((counter.config >> 8) & 0xff) : 1;
    }

    // Brings a counter up to date; what is left over of the prescaler stays in `since`.
    void refresh(uint32_t which, int64_t time) {
        Counter &counter = counters_[which];
        const int64_t now = ticks(time);
        if ((counter.config & config_enable) == 0) {
            counter.since = now;
            return;
        }
        const int64_t counted = (now - counter.since) / divider(counter);
        counter.since += counted * divider(counter);
        counter.base += static_cast<uint64_t>(counted);
        if (!joined())
            counter.base &= 0xffffffff;
    }

    uint32_t value(uint32_t which) const {
        if (joined())
            return static_cast<uint32_t>(counters_[0].base >> 32 * which);
        return static_cast<uint32_t>(counters_[which].base);
    }

    void write(uint32_t which, uint32_t reg, uint32_t written) {
        Counter &counter = counters_[which];
        // Joined, both halves are of the first counter.
        uint64_t &base = counters_[joined() ? 0 : which].base;
        const uint32_t shift = joined() ? 32 * which : 0;
        if (reg == reg_config) {
            counter.config = written & ~uint32_t{config_reset};
            if ((written & config_reset) != 0)
                counter.base = 0;
        } else if (reg == reg_value) {
            base = (base & ~(uint64_t{0xffffffff} << shift)) | uint64_t{written} << shift;
        } else if (reg == reg_compare) {
            counter.compare = written;
        } else if (reg == reg_start) {
            counter.config |= written & config_enable;
        } else if (reg == reg_reset && (written & 1) != 0) {
            base = 0;
        }
        plan(0);
        plan(1);
    }

    // Schedules the next time that a counter, which is up to date, reaches the value to compare with.
    void plan(uint32_t which) {
        Counter &counter = counters_[which];
        ++counter.generation;
        constexpr uint32_t needed = config_enable | config_event;
        if ((counter.config & needed) != needed || (joined() && which == 1))
            return;
        const uint64_t high = joined() ? uint64_t{counters_[1].compare} << 32 : 0;
        uint64_t distance = (high | counter.compare) - counter.base;
        if (!joined())
            distance &= 0xffffffff;
        constexpr uint64_t round_trip = uint64_t{1} << 32;
        if (distance == 0)
            distance = round_trip;
        // Nobody waits for longer, and the product below stays in its range.
        if (distance > round_trip)
            return;
        const int64_t due = counter.since + static_cast<int64_t>(distance) * divider(counter);
        machine_.schedule(machine_time(due), *this, counter.generation << 1 | which);
    }

    int64_t numerator_, denominator_;
    Device *events_ = nullptr;
    std::array<uint32_t, 2> lines_{};
    std::array<Counter, 2> counters_{};
};

} // namespace

std::unique_ptr<Device> make_timer(Machine &machine, const std::string &name, const Settings &settings) {
    return std::make_unique<Timer>(machine, name, settings);
}

} // namespace tilewright
