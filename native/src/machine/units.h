// Units of which a group of harts has fewer than harts, so that operations of several harts wait for each other.
#pragma once

#include "isa/op.h"

#include <algorithm>
#include <cstdint>

namespace tilewright {

// One such unit. Operations come in the order of time; times are in cycles of its harts.
struct SharedUnit {
    static constexpr uint32_t nobody = ~uint32_t{0};
    int64_t cycles = 1;       // from one operation to the next
    bool round_robin = false; // whether the hart that it served last lets others go first in a cycle
    int64_t free_from = 0;
    uint32_t last = nobody; // the hart that it served last

    // Takes an operation that comes in cycle `time`; how long it waits for its turn.
    int64_t take(int64_t time) {
        const int64_t begin = std::max(time, free_from);
        free_from = begin + cycles;
        return begin - time;
    }
};

// Whether a unit for these instructions can be shared. Others never look for one, which costs them nothing. Harts with a
// scoreboard go on while a product is computed elsewhere.
constexpr bool can_share_unit(Timing timing, bool scoreboard) {
    if (timing == Timing::fp || timing == Timing::fp_divide || timing == Timing::fp_sqrt)
        return true;
    return scoreboard && (timing == Timing::multiply || timing == Timing::multiply_high || timing == Timing::divide);
}

} // namespace tilewright
