// Performance counters of the RI5CY core: which events count (PCER), whether they do (PCMR), and the counts (PCCR).
#include "machine/machine.h"

namespace tilewright {

namespace {

enum : uint32_t {
    csr_count = 0x780, // then one for each event
    csr_all_counts = 0x79f,
    csr_events = 0xcc0, // the PULP SDK's numbers; the manual of the core has them at 0x7a0 and 0x7a1
    csr_mode = 0xcc1,
    csr_events_manual = 0x7a0,
    csr_mode_manual = 0x7a1,
};

// What each counter has seen since the start. Stalls of jumps through registers are among those for results, and
// compressed instructions are not told apart.
std::array<uint64_t, PerformanceCounters::events_known> seen(const Hart &hart, int64_t time) {
    const Counters &c = hart.counters;
    return {static_cast<uint64_t>(time),
            c.instructions,
            c.stall_use,
            0,
            c.stall_fetch,
            c.loads,
            c.stores,
            c.jumps,
            c.branches,
            c.taken,
            0,
            c.asleep,
            c.far_loads,
            c.far_stores,
            c.stall_far_loads,
            c.stall_far_stores,
            c.stall_bank};
}

} // namespace

uint64_t PerformanceCounters::value(uint32_t event, uint64_t seen) const {
    return counts(event) ? seen - base[event] : base[event];
}

void PerformanceCounters::set(uint32_t event, uint64_t seen, uint64_t value) {
    base[event] = counts(event) ? seen - value : value;
}

bool Machine::read_performance(const Hart &hart, uint32_t number, int64_t time, uint32_t &value) const {
    const PerformanceCounters &counters = hart.performance;
    if (number == csr_events || number == csr_events_manual) {
        value = counters.events;
    } else if (number == csr_mode || number == csr_mode_manual) {
        value = counters.mode;
    } else if (number >= csr_count && number < csr_all_counts) {
        const uint32_t event = number - csr_count;
        value = 0;
        if (event < PerformanceCounters::events_known)
            value = static_cast<uint32_t>(counters.value(event, seen(hart, time)[event]));
    } else {
        return false;
    }
    return true;
}

bool Machine::write_performance(Hart &hart, uint32_t number, int64_t time, uint32_t value) {
    PerformanceCounters &counters = hart.performance;
    const auto now_seen = seen(hart, time);
    std::array<uint64_t, PerformanceCounters::events_known> values{};
    for (uint32_t event = 0; event < values.size(); ++event)
        values[event] = counters.value(event, now_seen[event]);
    if (number == csr_events || number == csr_events_manual)
        counters.events = value;
    else if (number == csr_mode || number == csr_mode_manual)
        counters.mode = value;
    else if (number == csr_all_counts)
        values.fill(value);
    else if (number >= csr_count && number < csr_count + values.size())
        values[number - csr_count] = value;
    else
        return number >= csr_count && number < csr_all_counts;
    for (uint32_t event = 0; event < values.size(); ++event)
        counters.set(event, now_seen[event], values[event]);
    return true;
}

} // namespace tilewright
