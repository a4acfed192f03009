// A memory of many banks that lie in tiles with some harts each: how long a request takes by distance, and who waits for
// whom on the way.
#pragma once

#include "machine/hart.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace tilewright {

// Cycles in which a bank serves an access. Requests from far come later than those from near that were made in the same
// cycle, so that single cycles are taken and not all up to one.
class Slots {
  public:
    // Takes `cycles` cycles in a row from `from` on, or later; the first of them. `now` never goes back.
    int64_t take(int64_t now, int64_t from, uint32_t cycles) {
        move_on(now);
        const auto offset = static_cast<uint64_t>(std::max<int64_t>(from - begin_, 0));
        if (offset < width) {
            // Where as many cycles in a row are free.
            uint64_t free = ~taken_;
            for (uint32_t i = 1; i < cycles; ++i)
                free &= ~(taken_ >> i);
            free &= ~uint64_t{0} << offset;
            if (const auto found = static_cast<uint32_t>(std::countr_zero(free)); found + cycles <= width) {
                taken_ |= ((uint64_t{1} << cycles) - 1) << found;
                return begin_ + found;
            }
        }
        // All cycles between the window and `behind_` are taken.
        const int64_t start = std::max({from, behind_, begin_ + int64_t{width}});
        behind_ = start + cycles;
        return start;
    }

  private:
    static constexpr uint32_t width = 64;

    void move_on(int64_t now) {
        const int64_t distance = now - begin_;
        if (distance <= 0)
            return;
        const int64_t end = begin_ + width;
        taken_ = distance < width ? taken_ >> distance : 0;
        begin_ = now;
        if (behind_ > end) {
            for (int64_t cycle = std::max(end, begin_); cycle < std::min(behind_, begin_ + int64_t{width}); ++cycle)
                taken_ |= uint64_t{1} << (cycle - begin_);
        }
    }

    int64_t begin_ = 0;  // of the window
    uint64_t taken_ = 0; // its cycles, as bits
    int64_t behind_ = 0; // first cycle behind the window that is free
};

struct TilesDescription {
    uint32_t harts_per_tile = 1;
    uint32_t banks_per_tile = 1;
    uint32_t tiles = 1;
    uint32_t subgroups = 1;  // of a group
    uint32_t groups = 1;     // of tiles
    uint32_t sequential = 0; // bytes of a tile that follow each other, at the start of the memory
    // Cycles from a request to its answer: in the tile, the subgroup, the group, and beyond.
    uint32_t cycles_tile = 1, cycles_subgroup = 1, cycles_group = 1, cycles_far = 1;
};

// The way from harts to banks. A tile sends one request a cycle to its own subgroup, to each other one of its group and
// to each other group, and takes one from each; answers have ways of their own.
class Tiles {
  public:
    // For harts from `first` on.
    Tiles(const TilesDescription &description, uint32_t first);

    // An access at an offset of the memory in cycle `time`, which is moved on where the hart itself has to wait. The
    // cycle behind that in which a bank next to the hart, free of others, would have answered. An atomic operation keeps
    // its bank for a second cycle.
    int64_t reach(const Hart &hart, uint32_t offset, bool atomic, int64_t &time) {
        const uint32_t home = (hart.index - first_) >> hart_shift_;
        const uint32_t tile = tile_of(offset), busy = atomic ? 2 : 1;
        Slots &bank = banks_[bank_of(tile, offset)];
        if (tile == home) {
            const int64_t now = time;
            time = bank.take(now, now, busy);
            return time + description_.cycles_tile - 1;
        }
        return reach_far(home, tile, bank, time, busy);
    }
    // A device takes a word in exactly this cycle, whoever else wants it.
    void take(uint32_t offset, int64_t now, int64_t time) { banks_[bank_of(offset)].take(now, time, 1); }
    uint32_t bank_of(uint32_t offset) const { return bank_of(tile_of(offset), offset); }
    uint32_t tile_of(uint32_t offset) const {
        return offset < sequential_end_ ? offset >> sequential_shift_
                                        : (offset >> row_shift_) & (description_.tiles - 1);
    }
    const TilesDescription &description() const { return description_; }

  private:
    struct Way {
        int64_t request_out = 0, request_in = 0, answer_out = 0, answer_in = 0; // first cycle in which each is free
    };

    uint32_t bank_of(uint32_t tile, uint32_t offset) const {
        const uint32_t banks = description_.banks_per_tile;
        return tile * banks + ((offset >> 2) & (banks - 1));
    }
    int64_t reach_far(uint32_t home, uint32_t tile, Slots &bank, int64_t &time, uint32_t busy);

    TilesDescription description_;
    uint32_t first_;
    uint32_t hart_shift_ = 0;
    uint32_t sequential_end_ = 0;
    uint32_t sequential_shift_ = 0;
    uint32_t row_shift_ = 0;
    uint32_t subgroup_shift_ = 0, group_shift_ = 0; // tiles of each, as powers of two
    uint32_t ways_per_tile_ = 1;
    std::vector<Slots> banks_;
    std::vector<Way> ways_; // by tile and direction
};

} // namespace tilewright
