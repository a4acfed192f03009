// What happens before what: vector clocks of harts and of what devices do on their own, as in FastTrack (PLDI 2009).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace tilewright {

// By thread: up to which moment of each its work is known to be done. What lies behind its end is 0.
using Clock = std::vector<uint32_t>;

// A moment of one thread, in a word: 11 bits of its number, 20 of its clock. Clocks begin at 1.
using Epoch = uint32_t;
constexpr uint32_t clock_bits = 20;
constexpr uint32_t last_clock = (1u << clock_bits) - 1;
constexpr uint32_t most_threads = 1u << (31 - clock_bits);
constexpr Epoch no_epoch = 0;
constexpr Epoch several = 1u << 31; // with the number of a set of readers
constexpr Epoch of_flag = ~0u;      // the byte is part of a flag by which harts tell each other

inline uint32_t thread_of(Epoch epoch) { return epoch >> clock_bits; }
inline uint32_t clock_of(Epoch epoch) { return epoch & last_clock; }
inline Epoch epoch_of(uint32_t thread, uint32_t clock) { return thread << clock_bits | clock; }
inline bool knows(const Clock &clock, Epoch epoch) { return clock_of(epoch) <= clock[thread_of(epoch)]; }
inline void join(Clock &clock, const Clock &other) {
    clock.resize(std::max(clock.size(), other.size()), 0);
    for (size_t i = 0; i < other.size(); ++i)
        clock[i] = std::max(clock[i], other[i]);
}

// Sets of moments in which bytes were read, none of which is known to come before another. Equal ones are kept once.
class Readers {
  public:
    // What readers become when one more reads at `epoch`, who knows `clock`.
    Epoch with(Epoch readers, Epoch epoch, const Clock &clock);
    // A reader that a clock does not know, other than `own`: the one of a preferred thread, where it is among them.
    Epoch unknown(Epoch readers, const Clock &clock, Epoch own, uint32_t preferred) const;
    bool full() const { return sets_.size() - free_.size() >= most_; }
    // Forgets all sets but those marked.
    void keep(const std::vector<bool> &used);
    size_t count() const { return sets_.size(); }

  private:
    static constexpr size_t least_room = 1 << 15;

    std::vector<std::vector<Epoch>> sets_; // in the order of threads
    size_t most_ = 2 * least_room;         // until it is looked which are still needed
    std::vector<uint32_t> free_;
    std::map<std::vector<Epoch>, uint32_t> numbers_;
    // What became of a set and one more reader, by the low bits of both.
    struct Step {
        Epoch from = no_epoch, added = no_epoch, to = no_epoch;
    };
    std::vector<Step> steps_ = std::vector<Step>(1 << 12);
};

} // namespace tilewright
