// Instruction caches: one for each hart, and behind them some that harts share, at up to two distances.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace tilewright {

// One cache: sets of lines, filled in turn of a shift register, one refill at a time.
class CacheLines {
  public:
    static constexpr uint32_t empty = 0xffffffff;

    CacheLines(uint32_t sets, uint32_t ways) : sets_(sets), ways_(ways), lines_(size_t{sets} * ways) {}

    // When a line is there: the cycle in which its refill ends, or -1 where it is not in the cache.
    int64_t ready(uint32_t line) const {
        const size_t first = size_t{line % sets_} * ways_;
        for (size_t way = 0; way < ways_; ++way)
            if (lines_[first + way].line == line)
                return lines_[first + way].ready;
        return -1;
    }

    // Cycles that a refill asked for at `time` waits for the one before.
    int64_t busy(int64_t time) const { return std::max<int64_t>(refill_end_ - time, 0); }

    // Puts in a line that comes at `ready`, and returns the one that had to go.
    uint32_t fill(uint32_t line, int64_t ready) {
        const uint32_t feedback = ~(state_ >> 7 ^ state_ >> 3 ^ state_ >> 2 ^ state_ >> 1) & 1;
        state_ = (state_ << 1 | feedback) & 0xff;
        Place &place = lines_[size_t{line % sets_} * ways_ + (state_ >> 1) % ways_];
        const uint32_t gone = place.line;
        place = Place{line, ready};
        refill_end_ = ready;
        return gone;
    }

    void clear() { lines_.assign(lines_.size(), Place{}); }

  private:
    struct Place {
        uint32_t line = empty;
        int64_t ready = 0;
    };

    uint32_t sets_;
    uint32_t ways_;
    std::vector<Place> lines_;
    uint32_t state_ = 0;
    int64_t refill_end_ = 0;
};

struct FetchTiming {
    uint32_t line_bytes = 16;
    uint32_t sets = 8, ways = 4;                                 // of each hart's own cache
    uint32_t shared_banks = 0, shared_sets = 0, shared_ways = 0; // of the cache behind; no banks: none
    uint32_t shared_by = 0;                                      // harts that share it; 0: all of a group
    uint32_t refill_cycles = 0; // added by each cache that must get a line from behind it
    uint32_t memory_cycles = 0; // to memory
    bool prefetch = false;      // whether the line behind comes along with each one that a hart enters
    // One cache more before memory, of the same lines: harts that share it (0: there is none), its size, cycles to it.
    uint32_t outer_by = 0, outer_sets = 0, outer_ways = 0, outer_cycles = 0;
    uint32_t lookup_cycles = 0; // of the cache behind before it asks the memory; none while it waits for another line
};

// The caches of a group of harts.
class FetchCaches {
  public:
    FetchCaches(const FetchTiming &timing, uint32_t harts);

    struct Refill {
        uint32_t cycles = 0;                                                // until the line is there
        std::array<uint32_t, 2> gone{CacheLines::empty, CacheLines::empty}; // lines that left the hart's cache
        bool kept = false;                                                  // whether the line is in it now
        bool missed = true;                                                 // whether it was not on its way before
    };
    // `hart` counts within the group; `line` is an address in lines.
    Refill refill(uint32_t hart, uint32_t line, int64_t time);
    void enable(bool enabled) { enabled_ = enabled; }
    void clear();

  private:
    int64_t from_behind(uint32_t hart, uint32_t line, int64_t time);
    int64_t from_outside(uint32_t hart, uint32_t line, int64_t time);

    FetchTiming timing_;
    std::vector<CacheLines> own_;
    std::vector<CacheLines> shared_; // by those who share it and bank
    std::vector<CacheLines> outer_;  // by those who share it
    bool enabled_ = true;
};

} // namespace tilewright
