// What is known of each byte of a memory: whether anything wrote it, and whether a transfer in flight uses it.
#pragma once

#include <cstdint>

namespace tilewright {

// Bytes [begin, end) at addresses.
struct Range {
    uint32_t begin;
    uint32_t end;

    bool holds(uint32_t address) const { return address - begin < end - begin; }
    bool meets(const Range &other) const { return begin < other.end && other.begin < end; }
};

} // namespace tilewright
