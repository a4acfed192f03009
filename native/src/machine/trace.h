// What harts do in the large: calls, returns, sleep. For traces that people look at.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tilewright {

enum class TraceKind : uint8_t {
    start,  // a hart begins at `pc`
    call,   // or an interrupt, to `pc`
    leave,  // a return, to `pc`
    jump,   // to `pc`, without a return address: a tail call, or a loop
    asleep, // at `pc`
    awake,
};

struct TraceEvent {
    int64_t time; // of the machine
    uint32_t pc;
    uint16_t hart;
    TraceKind kind;
};

// Keeps events until somebody takes them; when there are too many, the later ones are only counted.
class Trace {
  public:
    void switch_on(size_t most) { most_ = most; }
    bool on() const { return most_ != 0; }
    void add(const TraceEvent &event) {
        if (events_.size() < most_)
            events_.push_back(event);
        else
            ++left_out_;
    }
    std::vector<TraceEvent> take() { return std::exchange(events_, {}); }
    uint64_t left_out() const { return left_out_; }

  private:
    std::vector<TraceEvent> events_;
    size_t most_ = 0;
    uint64_t left_out_ = 0;
};

} // namespace tilewright
