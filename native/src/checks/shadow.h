// What is known of each byte of a memory: whether anything wrote it.
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
};

enum ByteState : uint8_t { byte_written = 1 };

// Whether all of some epochs, which belong to the bytes of an access, are one.
template <size_t Size> bool all_are(const uint32_t *epochs, uint32_t epoch) {
    if constexpr (Size == 1)
        return *epochs == epoch;
    uint64_t pairs[Size / 2 + 1];
    std::memcpy(pairs, epochs, 4 * Size);
    const uint64_t pair = uint64_t{epoch} << 32 | epoch;
    if constexpr (Size == 2)
        return pairs[0] == pair;
    return ((pairs[0] ^ pair) | (pairs[1] ^ pair)) == 0;
}

// The states of all memories, by address. Addresses in no memory have none.
class Shadow {
  public:
    explicit Shadow(const std::vector<std::unique_ptr<Memory>> &memories) : memories_(memories) {}

    void set(const Range &range, uint8_t state);
    // The first byte without any of these states.
    std::optional<uint32_t> first_without(const Range &range, uint8_t state) const;
    // Bytes that were copied are as written as those they come from; what has no source in a memory counts as written.
    void copy_written(const std::vector<Range> &from, const std::vector<Range> &to);

  private:
    uint8_t *at(const Range &range) const;

    const std::vector<std::unique_ptr<Memory>> &memories_;
};

} // namespace tilewright
