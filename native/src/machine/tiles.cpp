#include "machine/tiles.h"

#include <stdexcept>
#include <string>

namespace tilewright {

Tiles::Tiles(const TilesDescription &description, uint32_t first) : description_(description), first_(first) {
    const uint32_t subgroups = description.subgroups * description.groups;
    for (const uint32_t number : {description.harts_per_tile, description.banks_per_tile, description.tiles,
                                  description.subgroups, description.groups, std::max(description.sequential, 1u)})
        if (!std::has_single_bit(number))
            throw std::invalid_argument("numbers of tiles must be powers of two, found " + std::to_string(number));
    if (subgroups > description.tiles)
        throw std::invalid_argument("there are more groups than tiles");
    subgroup_shift_ = static_cast<uint32_t>(std::countr_zero(description.tiles / subgroups));
    group_shift_ = static_cast<uint32_t>(std::countr_zero(description.tiles / description.groups));
    ways_per_tile_ = description.subgroups + description.groups - 1;
    hart_shift_ = static_cast<uint32_t>(std::countr_zero(description.harts_per_tile));
    row_shift_ = static_cast<uint32_t>(std::countr_zero(description.banks_per_tile)) + 2;
    sequential_end_ = description.sequential * description.tiles;
    sequential_shift_ = static_cast<uint32_t>(std::countr_zero(std::max(description.sequential, 1u)));
    banks_.resize(size_t{description.tiles} * description.banks_per_tile);
    ways_.resize(size_t{description.tiles} * ways_per_tile_);
}

// Half of the cycles beyond that of the bank are on the way there, half on the way back. A request that its bank does
// not take yet keeps the next one of the same way from leaving.
int64_t Tiles::reach_far(uint32_t home, uint32_t tile, Slots &bank, int64_t &time, uint32_t busy) {
    const uint32_t group = (home ^ tile) >> group_shift_;
    const uint32_t subgroup = (home ^ tile) >> subgroup_shift_;
    const uint32_t cycles = group != 0      ? description_.cycles_far
                            : subgroup != 0 ? description_.cycles_group
                                            : description_.cycles_subgroup;
    const uint32_t way = group != 0 ? description_.subgroups - 1 + group : subgroup;
    const int64_t hops = (cycles - 1) / 2;
    Way &here = ways_[size_t{home} * ways_per_tile_ + way];
    Way &there = ways_[size_t{tile} * ways_per_tile_ + way];
    const int64_t now = time;
    time = std::max(now, here.request_out);
    const int64_t arrived = std::max(time + hops, there.request_in);
    const int64_t start = bank.take(now, arrived, busy);
    there.request_in = arrived + 1;
    here.request_out = std::max(time + 1, start - hops);
    const int64_t answered = std::max(start + 1, there.answer_out);
    there.answer_out = answered + 1;
    const int64_t back = std::max(answered + hops, here.answer_in);
    here.answer_in = back + 1;
    return back - 1;
}

} // namespace tilewright
