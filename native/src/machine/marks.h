// When harts come to places of a program that somebody asked about, and what they have counted by then.
#pragma once

#include "machine/hart.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tilewright {

struct Passage {
    int64_t time; // of the machine
    int64_t cycles;
    uint32_t pc;
    uint16_t hart;
    Counters counters;
};

// The places of one hart: one bit for each halfword between the first and the last of them.
class Marks {
  public:
    void set(const std::vector<uint32_t> &addresses) {
        places_.clear();
        if (addresses.empty())
            return;
        const auto [first, last] = std::ranges::minmax(addresses);
        first_ = first;
        places_.assign((last - first) / 2 + 1, false);
        for (const uint32_t address : addresses)
            places_[(address - first) / 2] = true;
    }
    bool any() const { return !places_.empty(); }
    bool has(uint32_t pc) const {
        const size_t at = (pc - first_) / 2;
        return at < places_.size() && places_[at];
    }

  private:
    std::vector<bool> places_;
    uint32_t first_ = 0;
};

} // namespace tilewright
