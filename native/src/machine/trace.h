// What harts do in the large: calls, returns, sleep. For traces that people look at.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tilewright {

enum class TraceKind : uint8_t {
    start,  // a hart begins at `pc`
    call,   // or an interrupt, to `pc`
    leave,  // a return, to `pc`
    jump,   // to the start of a function, without a return address: a tail call
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
    // Of jumps, those to one of the functions count.
    void switch_on(size_t most, std::vector<uint32_t> functions) {
        most_ = most;
        functions_ = std::move(functions);
        std::ranges::sort(functions_);
    }
    bool on() const { return most_ != 0; }
    bool is_function(uint32_t address) const { return std::ranges::binary_search(functions_, address); }
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
    std::vector<uint32_t> functions_;
    size_t most_ = 0;
    uint64_t left_out_ = 0;
};

} // namespace tilewright
