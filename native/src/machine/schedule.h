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

// Something that a device does later.
struct Event {
    int64_t time;
    uint64_t order;
    Device *device;
    uint32_t tag;

    bool operator>(const Event &other) const { return time != other.time ? time > other.time : order > other.order; }
};

// Harts by the cycle in which they go on. Near cycles have a queue each, so that a hart is found without a search;
// all else is in a heap. Of the harts of one cycle, those that were woken last go on first.
class Schedule {
  public:
    static constexpr uint64_t slots = 64;

    int64_t now() const { return now_; }

    // A hart that stands back goes on behind those that are there.
    void push(Scheduled &hart, int64_t time, bool behind = false) {
        const int64_t at = std::max(time, now_);
        if (static_cast<uint64_t>(at - now_) >= slots) [[unlikely]] {
            far_.push_back(FarHart{at, order_++, &hart});
            std::push_heap(far_.begin(), far_.end(), std::greater<>());
            return;
        }
        const size_t slot = slot_of(at);
        Queue &queue = queues_[slot];
        occupied_ |= uint64_t{1} << slot;
        // Harts mostly come in the order in which they will go on.
        if (queue.head == nullptr || behind || hart.turn <= queue.tail->turn) [[likely]] {
            hart.next_in_slot = nullptr;
            (queue.head == nullptr ? queue.head : queue.tail->next_in_slot) = &hart;
            queue.tail = &hart;
            return;
        }
        Scheduled **link = &queue.head;
        while ((*link)->turn >= hart.turn)
            link = &(*link)->next_in_slot;
        hart.next_in_slot = *link;
        *link = &hart;
    }

    void push(int64_t time, Device *device, uint32_t tag) {
        events_.push_back(Event{std::max(time, now_), order_++, device, tag});
        std::push_heap(events_.begin(), events_.end(), std::greater<>());
        next_event_ = events_.front().time;
    }

    // The next hart of this cycle; null when there is none.
    Scheduled *pop() {
        const size_t slot = slot_of(now_);
        Queue &queue = queues_[slot];
        Scheduled *hart = queue.head;
        if (hart != nullptr) {
            queue.head = hart->next_in_slot;
            if (queue.head == nullptr)
                occupied_ &= ~(uint64_t{1} << slot);
        }
        return hart;
    }

    bool others_now() const { return queues_[slot_of(now_)].head != nullptr; }

    // The unit beside a hart that is next in this cycle; null where a hart is, or nobody.
    Scheduled *pop_unit() {
        const Scheduled *due = queues_[slot_of(now_)].head;
        return due == nullptr || due->is_hart ? nullptr : pop();
    }

    // Goes on to a cycle, which is not the last one known, if nobody comes before or in it; what this cycle had is done.
    bool advance_alone(int64_t time) {
        if (next() <= time)
            return false;
        now_ = time;
        return true;
    }

    // The last cycle in which whoever was taken last is alone.
    int64_t alone(int64_t until) const { return others_now() ? now_ : std::max(now_, std::min(next(), until) - 1); }

    // The next cycle in which a hart or a device does something; `now` while harts of this cycle are left.
    int64_t next() const {
        const int64_t far = far_.empty() ? never : far_.front().time;
        if (occupied_ == 0)
            return std::min(next_event_, far);
        const int distance = std::countr_zero(std::rotr(occupied_, static_cast<int>(slot_of(now_))));
        return std::min({now_ + distance, next_event_, far});
    }

    bool event_due() const { return next_event_ <= now_; }

    Event pop_event() {
        std::pop_heap(events_.begin(), events_.end(), std::greater<>());
        const Event event = events_.back();
        events_.pop_back();
        next_event_ = events_.empty() ? never : events_.front().time;
        return event;
    }

    void advance(int64_t time) {
        now_ = time;
        // They take their turn among the others of the cycle, however long ago they were put here.
        while (!far_.empty() && far_.front().time <= now_) {
            std::pop_heap(far_.begin(), far_.end(), std::greater<>());
            Scheduled &hart = *far_.back().hart;
            far_.pop_back();
            push(hart, now_);
        }
    }

  private:
    struct Queue {
        Scheduled *head = nullptr;
        Scheduled *tail = nullptr;
    };

    struct FarHart {
        int64_t time;
        uint64_t order;
        Scheduled *hart;

        bool operator>(const FarHart &other) const {
            return time != other.time ? time > other.time : order > other.order;
        }
    };

    static size_t slot_of(int64_t time) { return static_cast<uint64_t>(time) % slots; }

    std::array<Queue, slots> queues_{};
    uint64_t occupied_ = 0; // queues with a hart, as bits
    int64_t now_ = 0;
    std::vector<Event> events_;
    std::vector<FarHart> far_; // a heap of harts that go on later than the queues reach
    int64_t next_event_ = never;
    uint64_t order_ = 0;
};

} // namespace tilewright
