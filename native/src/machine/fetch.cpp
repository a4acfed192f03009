#include "machine/fetch.h"

namespace tilewright {

FetchCaches::FetchCaches(const FetchTiming &timing, uint32_t harts)
    : timing_(timing), own_(harts, CacheLines(timing.sets, timing.ways)),
      shared_(timing.shared_banks, CacheLines(timing.shared_sets, timing.shared_ways)) {}

int64_t FetchCaches::from_behind(uint32_t line, int64_t time) {
    if (shared_.empty())
        return timing_.memory_cycles;
    CacheLines &bank = shared_[line % shared_.size()];
    // Banks take lines in turn, so that sets of a bank are chosen by what is left of the address.
    const auto inside = static_cast<uint32_t>(line / shared_.size());
    if (const int64_t ready = bank.ready(inside); ready >= 0)
        return std::max<int64_t>(ready - time, 0);
    const int64_t cycles = bank.busy(time) + timing_.memory_cycles + timing_.refill_cycles;
    bank.fill(inside, time + cycles);
    return cycles;
}

FetchCaches::Refill FetchCaches::refill(uint32_t hart, uint32_t line, int64_t time) {
    if (!enabled_)
        return {timing_.memory_cycles, CacheLines::empty, false};
    CacheLines &own = own_[hart];
    const int64_t cycles = own.busy(time) + from_behind(line, time) + timing_.refill_cycles;
    return {static_cast<uint32_t>(cycles), own.fill(line, time + cycles), true};
}

void FetchCaches::clear() {
    for (CacheLines &lines : own_)
        lines.clear();
    for (CacheLines &lines : shared_)
        lines.clear();
}

} // namespace tilewright
