#include "machine/fetch.h"

namespace tilewright {

namespace {

// How many caches there are if so many harts share each.
uint32_t caches_of(uint32_t harts, uint32_t by) { return by == 0 ? 1 : (harts + by - 1) / by; }

} // namespace

FetchCaches::FetchCaches(const FetchTiming &timing, uint32_t harts)
    : timing_(timing), own_(harts, CacheLines(timing.sets, timing.ways)),
      shared_(size_t{timing.shared_banks} * caches_of(harts, timing.shared_by),
              CacheLines(timing.shared_sets, timing.shared_ways)),
      outer_(timing.outer_by == 0 ? 0 : caches_of(harts, timing.outer_by),
             CacheLines(timing.outer_sets, timing.outer_ways)) {}

int64_t FetchCaches::from_outside(uint32_t hart, uint32_t line, int64_t time) {
    if (outer_.empty())
        return timing_.memory_cycles;
    CacheLines &outer = outer_[hart / timing_.outer_by];
    if (const int64_t ready = outer.ready(line); ready >= 0)
        return std::max<int64_t>(ready - time, 0) + timing_.outer_cycles;
    const int64_t cycles = outer.busy(time) + timing_.memory_cycles;
    outer.fill(line, time + cycles);
    return cycles + timing_.outer_cycles;
}

int64_t FetchCaches::from_behind(uint32_t hart, uint32_t line, int64_t time) {
    if (shared_.empty())
        return from_outside(hart, line, time);
    const uint32_t banks = timing_.shared_banks;
    CacheLines &bank = shared_[(timing_.shared_by == 0 ? 0 : hart / timing_.shared_by) * size_t{banks} + line % banks];
    // Banks take lines in turn, so that sets of a bank are chosen by what is left of the address.
    const uint32_t inside = line / banks;
    if (const int64_t ready = bank.ready(inside); ready >= 0)
        return std::max<int64_t>(ready - time, 0);
    const int64_t begin = std::max<int64_t>(bank.busy(time), timing_.lookup_cycles);
    const int64_t cycles = begin + from_outside(hart, line, time + begin) + timing_.refill_cycles;
    bank.fill(inside, time + cycles);
    return cycles;
}

FetchCaches::Refill FetchCaches::refill(uint32_t hart, uint32_t line, int64_t time) {
    if (!enabled_)
        return {.cycles = timing_.memory_cycles};
    CacheLines &own = own_[hart];
    Refill refill{.kept = true};
    const auto fetch = [&](uint32_t wanted, int64_t at) {
        const int64_t begin = own.busy(at);
        const int64_t cycles =
            begin + from_behind(hart, wanted, at + (timing_.prefetch ? begin : 0)) + timing_.refill_cycles;
        refill.gone[wanted != line] = own.fill(wanted, at + cycles);
        return cycles;
    };
    if (const int64_t ready = timing_.prefetch ? own.ready(line) : -1; ready >= 0) {
        refill.missed = false;
        refill.cycles = static_cast<uint32_t>(std::max<int64_t>(ready - time, 0));
    } else {
        refill.cycles = static_cast<uint32_t>(fetch(line, time));
    }
    if (timing_.prefetch && own.ready(line + 1) < 0)
        fetch(line + 1, time + refill.cycles);
    return refill;
}

void FetchCaches::clear() {
    for (auto *caches : {&own_, &shared_, &outer_})
        for (CacheLines &lines : *caches)
            lines.clear();
}

} // namespace tilewright
