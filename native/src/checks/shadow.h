// What is known of each byte of a memory: whether anything wrote it, and whether a transfer in flight uses it.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace tilewright {

struct Memory;

// Bytes [begin, end) at addresses.
struct Range {
    uint32_t begin;
    uint32_t end;

    bool holds(uint32_t address) const { return address - begin < end - begin; }
    bool meets(const Range &other) const { return begin < other.end && other.begin < end; }
};

enum ByteState : uint8_t {
    byte_written = 1,
    byte_target = 2, // of a transfer whose end no hart has seen: not to be read or written
    byte_source = 4, // likewise: not to be written
    byte_claimed = byte_target | byte_source,
};

// The same state for each byte of an access.
template <size_t Size> constexpr uint32_t each_byte(uint32_t state) { return state * (0x01010101u >> (32 - 8 * Size)); }

template <size_t Size> uint32_t shadow_of(const uint8_t *shadow) {
    uint32_t states = 0;
    std::memcpy(&states, shadow, Size);
    return states;
}

template <size_t Size> void set_shadow(uint8_t *shadow, uint32_t states) { std::memcpy(shadow, &states, Size); }

// The states of all memories, by address. Addresses in no memory have none.
class Shadow {
  public:
    explicit Shadow(const std::vector<std::unique_ptr<Memory>> &memories) : memories_(memories) {}

    void set(const Range &range, uint8_t state);
    void clear(const Range &range, uint8_t state);
    // The first byte with any of these states, or the first without any of them.
    std::optional<uint32_t> first_with(const Range &range, uint8_t state) const;
    std::optional<uint32_t> first_without(const Range &range, uint8_t state) const;
    // Bytes that were copied are as written as those they come from; what has no source in a memory counts as written.
    void copy_written(const std::vector<Range> &from, const std::vector<Range> &to);

  private:
    uint8_t *at(const Range &range) const;

    const std::vector<std::unique_ptr<Memory>> &memories_;
};

} // namespace tilewright
