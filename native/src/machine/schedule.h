// Time: which hart goes on at which cycle, and what devices do when.
#pragma once

#include "machine/hart.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace tilewright {

constexpr int64_t never = std::numeric_limits<int64_t>::max() / 4;

class Device;

// Something that happens later: to a device, or (device null) to the hart `tag`.
struct Event {
    int64_t time;
    uint64_t order;
    Device *device;
    uint32_t tag;

    bool operator>(const Event &other) const { return time != other.time ? time > other.time : order > other.order; }
};

// Harts by the cycle in which they go on. Near cycles have a queue each, so that a hart is found without a search;
// all else is in a heap. Harts of one cycle go on in the order in which they came.
class Schedule {
  public:
    static constexpr int64_t slots = 64;

    explicit Schedule(std::vector<Hart> &harts) : harts_(harts) {
        queues_.fill(Queue{});
        now_ = 0;
    }

    int64_t now() const { return now_; }

    void push(Hart &hart, int64_t time) {
        const int64_t at = std::max(time, now_);
        if (at - now_ >= slots) {
            push(at, nullptr, hart.index);
            return;
        }
        const auto slot = static_cast<size_t>(at % slots);
        Queue &queue = queues_[slot];
        hart.next_in_slot = -1;
        const auto index = static_cast<int32_t>(hart.index);
        if (queue.head < 0)
            queue.head = index;
        else
            harts_[static_cast<size_t>(queue.tail)].next_in_slot = index;
        queue.tail = index;
        occupied_ |= uint64_t{1} << slot;
    }

    void push(int64_t time, Device *device, uint32_t tag) {
        events_.push_back(Event{std::max(time, now_), order_++, device, tag});
        std::push_heap(events_.begin(), events_.end(), std::greater<>());
        next_event_ = events_.front().time;
    }

    // The next hart of this cycle; null when there is none.
    Hart *pop() {
        const auto slot = static_cast<size_t>(now_ % slots);
        Queue &queue = queues_[slot];
        if (queue.head < 0)
            return nullptr;
        Hart &hart = harts_[static_cast<size_t>(queue.head)];
        queue.head = hart.next_in_slot;
        if (queue.head < 0)
            occupied_ &= ~(uint64_t{1} << slot);
        return &hart;
    }

    // The next cycle in which a hart or a device does something; `now` while harts of this cycle are left.
    int64_t next() const {
        if (occupied_ == 0)
            return next_event_;
        const int distance = std::countr_zero(std::rotr(occupied_, static_cast<int>(now_ % slots)));
        return std::min(now_ + distance, next_event_);
    }

    bool event_due() const { return next_event_ <= now_; }

    Event pop_event() {
        std::pop_heap(events_.begin(), events_.end(), std::greater<>());
        const Event event = events_.back();
        events_.pop_back();
        next_event_ = events_.empty() ? never : events_.front().time;
        return event;
    }

    void advance(int64_t time) { now_ = time; }

  private:
    struct Queue {
        int32_t head = -1;
        int32_t tail = -1;
    };

    std::vector<Hart> &harts_;
    std::array<Queue, slots> queues_{};
    uint64_t occupied_ = 0; // queues with a hart, as bits
    int64_t now_ = 0;
    std::vector<Event> events_;
    int64_t next_event_ = never;
    uint64_t order_ = 0;
};

} // namespace tilewright
