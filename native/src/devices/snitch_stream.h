// A stream of Snitch (Xssr): reads or writes elements of 8 bytes at addresses of a loop nest, through a small FIFO.
#pragma once

#include "machine/machine.h"

#include <array>
#include <cstdint>

namespace tilewright {

struct StreamSettings {
    uint32_t depth = 4;         // elements that may be under way or wait
    int64_t latency = 2;        // from a bank's cycle until the element can be used
    int64_t start = 1;          // from the write of a job to its first request
    uint32_t element_bytes = 8; // strides and addresses are multiples of this; the rest is dropped
};

// What a program writes: bounds, strides, and for indirect jobs how indices become addresses.
struct StreamConfiguration {
    static constexpr uint32_t dimensions = 4;
    uint32_t repeat = 0;
    std::array<uint32_t, dimensions> bounds{}, strides{};
    uint32_t index_settings = 0, index_base = 0;
};

struct StreamJob {
    StreamConfiguration loops;
    uint32_t pointer = 0;
    uint32_t dims = 1;
    bool write = false;
    bool indirect = false;
    const Op *op = nullptr; // that started it
};

class Stream {
  public:
    static constexpr uint32_t most = 8; // elements that it can hold

    Stream(Machine &machine, Hart &hart, const StreamSettings &settings, int64_t *shared_port)
        : base_(hart.near->base), size_(hart.near->memory->size), data_(hart.near->data),
          bank_shift_(hart.near->bank_shift), bank_mask_(hart.near->bank_mask), bank_slots_(hart.near->bank_slots),
          port_(shared_port != nullptr ? shared_port : &own_port_), latency_(settings.latency), depth_(settings.depth),
          machine_(machine), hart_(hart), settings_(settings) {
        for (uint32_t i = 0; i < depth_; ++i)
            fifo_[i].next = &fifo_[(i + 1) % depth_];
        first_ = fifo_.data();
    }
    Stream(const Stream &) = delete;
    Stream &operator=(const Stream &) = delete;

    // Registers. A write is refused while a job waits behind the one that runs.
    bool accepts() const { return !queued_; }
    uint32_t read(uint32_t number) const;
    // False where there is no such register, or the job cannot be.
    bool write(uint32_t number, uint32_t value, const Op *op, int64_t time);

    bool is_writing() const { return active_ && job_.write; }
    // From when the next element is there; `never` where no job will bring one.
    int64_t ready() const { return waiting_ != 0 ? first_->ready : never; }
    // Whether nothing but that changes when an element is taken.
    bool flows() const { return flows_; }
    // Takes the next element, if it is given once more: then nothing changes at all.
    [[gnu::always_inline]] bool take_again(uint64_t &value) {
        value = first_->value;
        if (first_->repeats == 0)
            return false;
        --first_->repeats;
        return true;
    }
    // From when the next element of a stream that flows is there.
    int64_t ready_flowing() const { return first_->ready; }
    // The same for the last time.
    [[gnu::always_inline]] uint64_t take(int64_t time) {
        Element &taken = *first_;
        const uint64_t value = taken.value;
        first_ = taken.next;
        if (flows_) [[likely]]
            fetch_next(taken, time);
        else
            leave_room(time);
        return value;
    }
    // Takes the next element of a stream that flows; false where it flows no longer then.
    [[gnu::always_inline]] bool take_flowing(int64_t now, uint64_t &value) {
        Element &taken = *first_;
        value = taken.value;
        if (taken.repeats != 0) {
            --taken.repeats;
            return true;
        }
        first_ = taken.next;
        const uint32_t offset = pointer_ - base_;
        if (left_ == 0 || offset >= size_) [[unlikely]]
            return fetch_slowly(taken, now);
        --left_;
        pointer_ += stride_;
        put_in(taken, offset, now);
        return true;
    }
    // From when an element can be put in.
    int64_t room() const { return own_port_ - static_cast<int64_t>(depth_); }
    void put(uint64_t value, const Op *op, int64_t time);

  private:
    struct Element {
        uint64_t value = 0;
        int64_t ready = 0;    // from when it is there
        uint64_t repeats = 0; // how often it is given again
        Element *next = nullptr;
    };

    bool begin(const StreamJob &job, int64_t time);
    // Asks for elements while there is room for them.
    void fetch(int64_t now);
    // For one, to the place of the one that was taken from a full FIFO: most of what streams do.
    [[gnu::always_inline]] void fetch_next(Element &place, int64_t now) {
        const uint32_t offset = next_address() - base_;
        if (offset >= size_) [[unlikely]] {
            --waiting_;
            leave_near(base_ + offset);
            return;
        }
        put_in(place, offset, now);
        if (!flows_) [[unlikely]]
            fetch(now);
    }
    void leave_room(int64_t now);
    [[gnu::always_inline]] void put_in(Element &place, uint32_t offset, int64_t now) {
        place.ready = request(offset, now, now) + latency_;
        place.repeats = repeat_;
        std::memcpy(&place.value, data_ + offset, sizeof place.value);
    }
    bool fetch_slowly(Element &place, int64_t now);
    uint32_t next_address() {
        const uint32_t here = pointer_;
        if (left_ != 0) [[likely]] {
            --left_;
            pointer_ += stride_;
        } else {
            next_row();
        }
        return here;
    }
    // On to the start of the next innermost loop, or the end of the job.
    void next_row();
    // The cycle in which an element's bank serves it.
    [[gnu::always_inline]] int64_t request(uint32_t offset, int64_t now, int64_t at) {
        int64_t served = std::max({at, own_port_, *port_});
        if (bank_slots_ != nullptr)
            served = bank_slots_[(offset >> bank_shift_) & bank_mask_].take(now, served);
        own_port_ = *port_ = served + 1;
        return served;
    }
    // From the address of an index to that of its element; false after a fault.
    bool look_up(uint32_t &address, int64_t now);
    void leave(const char *why, uint32_t address);
    void leave_near(uint32_t address);

    // What each element needs comes first.
    bool flows_ = false;       // the FIFO is full whenever nothing is taken, and nobody looks at single elements
    bool active_ = false;      // has elements left to ask for
    bool queued_ = false;      // `behind_` waits
    Element *first_ = nullptr; // of those in the FIFO
    uint32_t waiting_ = 0;
    uint32_t left_ = 0, repeat_ = 0; // elements of the innermost loop behind this one; how often each is given again
    uint32_t pointer_ = 0, stride_ = 0;
    uint32_t base_, size_;
    uint8_t *data_;
    uint32_t bank_shift_, bank_mask_;
    BankSlots *bank_slots_;
    int64_t own_port_ = 0; // first cycle in which its port is free
    int64_t *port_;        // the same of the port that it shares, or its own
    int64_t latency_;
    uint32_t depth_;
    std::array<Element, most> fifo_{}; // a ring
    Machine &machine_;
    Hart &hart_;
    StreamSettings settings_;
    uint32_t index_word_ = 1; // the eight bytes of indices that were read last; odd: none
    std::array<uint32_t, StreamConfiguration::dimensions> at_{}; // of the loops around the innermost
    StreamJob job_, behind_;
    StreamConfiguration registers_;
};

} // namespace tilewright
