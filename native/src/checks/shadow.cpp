#include "checks/shadow.h"

#include "machine/memory.h"

#include <algorithm>

namespace tilewright {

uint8_t *Shadow::at(const Range &range) const {
    for (const auto &memory : memories_)
        if (memory->holds(range.begin, range.end - range.begin))
            return memory->shadow + (range.begin - memory->base);
    return nullptr;
}

void Shadow::set(const Range &range, uint8_t state) {
    if (uint8_t *states = at(range))
        for (uint32_t i = 0; i < range.end - range.begin; ++i)
            states[i] |= state;
}

std::optional<uint32_t> Shadow::first_without(const Range &range, uint8_t state) const {
    if (const uint8_t *states = at(range))
        for (uint32_t i = 0; i < range.end - range.begin; ++i)
            if ((states[i] & state) == 0)
                return range.begin + i;
    return std::nullopt;
}

void Shadow::copy_written(const std::vector<Range> &from, const std::vector<Range> &to) {
    auto source = from.begin();
    uint32_t used = 0; // bytes of *source
    for (const Range &target : to) {
        for (uint32_t begin = target.begin; begin < target.end;) {
            while (source != from.end() && used == source->end - source->begin) {
                ++source;
                used = 0;
            }
            const uint32_t left = target.end - begin;
            const uint32_t size = source == from.end() ? left : std::min(left, source->end - source->begin - used);
            const Range part{begin, begin + size};
            set(part, byte_written);
            if (source != from.end()) {
                const uint8_t *states = at({source->begin + used, source->begin + used + size});
                uint8_t *copied = at(part);
                for (uint32_t i = 0; states != nullptr && copied != nullptr && i < size; ++i)
                    if ((states[i] & byte_written) == 0)
                        copied[i] &= static_cast<uint8_t>(~byte_written);
                used += size;
            }
            begin += size;
        }
    }
}

} // namespace tilewright
