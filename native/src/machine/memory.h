// Memories: bytes at an address, in banks that serve one access a cycle.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <sys/mman.h>
#include <utility>
#include <vector>

namespace tilewright {

// Zeroed memory that costs nothing until it is touched.
class Pages {
  public:
    Pages() = default;
    explicit Pages(size_t bytes) : bytes_(bytes) {
        void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        data_ = p == MAP_FAILED ? nullptr : static_cast<uint8_t *>(p);
        if (data_ == nullptr)
            throw std::bad_alloc();
    }
    Pages(Pages &&other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
    Pages &operator=(Pages &&other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Pages() {
        if (data_ != nullptr)
            munmap(data_, bytes_);
    }
    uint8_t *data() const { return data_; }
    // Zeroes it again.
    void clear() const { madvise(data_, bytes_, MADV_DONTNEED); }

  private:
    uint8_t *data_ = nullptr;
    size_t bytes_ = 0;
};

// The cycles in which a bank is taken, from one on: accesses may come a little ahead of their time.
struct BankSlots {
    static constexpr int64_t known = 64; // cycles
    int64_t from = 0;
    uint64_t taken = 0; // bit i: in cycle from + i

    void move_to(int64_t now) {
        if (now > from) {
            taken = now - from < known ? taken >> (now - from) : 0;
            from = now;
        }
    }
    // Takes the first free cycle from `at` on and returns it. Nobody asks for cycles before `now` any more.
    [[gnu::always_inline]] int64_t take(int64_t now, int64_t at) {
        uint64_t left = taken;
        const int64_t passed = now - from;
        if (passed > 0) {
            left = passed < known ? left >> passed : 0;
            from = now;
        }
        const auto first = static_cast<uint64_t>(at - from);
        if (first < known && (left >> first & 1) == 0) [[likely]] {
            taken = left | uint64_t{1} << first;
            return at;
        }
        taken = left;
        return take_later(at);
    }
    // The same where that cycle is not free, is not known, or is past.
    [[gnu::noinline]] int64_t take_later(int64_t at) {
        const int64_t first = std::max<int64_t>(at - from, 0);
        if (first >= known)
            return at;
        const int64_t found = first + std::countr_one(taken >> first);
        if (found < known)
            taken |= uint64_t{1} << found;
        return from + found;
    }
    void block(int64_t now, int64_t at) {
        move_to(now);
        if (at >= from && at - from < known)
            taken |= uint64_t{1} << (at - from);
    }
};

struct Memory {
    std::string name;
    uint32_t index = 0;
    uint32_t base = 0;
    uint32_t size = 0;
    Pages pages;
    uint8_t *data = nullptr;
    // For checks: the state of each byte, when it was last read and written (see checks/order.h), and where the
    // instructions are that did so, by word.
    std::vector<Pages> shadow_pages;
    uint8_t *shadow = nullptr;
    uint32_t *reads = nullptr, *writes = nullptr;
    uint32_t *read_places = nullptr, *write_places = nullptr;
    uint32_t bank_mask = 0;            // banks - 1; words go to banks in turn
    uint32_t bank_shift = 2;           // bytes of these words, as a power of two
    std::vector<BankSlots> bank_slots; // for harts with a scoreboard
    std::vector<int64_t> bank_free;    // first cycle in which each bank can serve again
    bool executable = false;
    uint64_t far_accesses = 0; // by harts that are not next to it

    bool holds(uint32_t address, uint32_t bytes) const {
        return address - base < size && bytes <= size - (address - base);
    }
    // Cycles that an access at `time` waits for its bank, which it then takes.
    int64_t take_bank(uint32_t offset, int64_t time) {
        int64_t &free = bank_free[(offset >> bank_shift) & bank_mask];
        const int64_t start = std::max(free, time);
        free = start + 1;
        return start - time;
    }
    // Somebody who always wins has the bank in a cycle.
    void block_slot(uint32_t offset, int64_t now, int64_t at) {
        bank_slots[(offset >> bank_shift) & bank_mask].block(now, at);
    }
    // The cycle in which an access from `at` on is served, for which its bank is taken then.
    int64_t take_slot(uint32_t offset, int64_t now, int64_t at) {
        return bank_slots[(offset >> bank_shift) & bank_mask].take(now, at);
    }
};

// A range of addresses that shows a memory a second time, to harts of one group or to all.
struct Alias {
    uint32_t base = 0;
    uint32_t size = 0;
    Memory *memory = nullptr;
    bool test_and_set = false; // a load leaves all ones behind
    int32_t group = -1;        // -1: all

    // The memory's own address of what an address shows.
    uint32_t shown(uint32_t address) const { return memory->base + (address - base); }
};

} // namespace tilewright
