// A machine that tells on programs: reads of memory never written, and races with transfers in flight.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright {

struct Hart;

// Bytes that a transfer reads or writes.
struct Range {
    uint32_t begin;
    uint32_t end;
};

// What a device does on its own: a DMA transfer, a job of an accelerator.
struct Transfer {
    std::string what;
    uint32_t hart = 0; // that asked for it
    uint32_t pc = 0;
    int64_t started = 0;
    std::vector<Range> reads;
    std::vector<Range> writes;
};

} // namespace tilewright
