// What comes to the queue of a Snitch core's floating-point subsystem, and what the core waits for meanwhile. How the
// instructions in it are executed is in snitch_sequencer.cpp.
#include "devices/snitch_core.h"
#include "machine/float_unit.h"

namespace tilewright {

void SnitchCore::add(const Entry &entry) {
    const uint64_t number = behind_++;
    queue_[number % places] = entry;
    if (entry.kind == Kind::loop) {
        collecting_.push_back(number);
        return;
    }
    ++held_;
    accesses_ += entry.kind != Kind::compute ? 1 : 0;
    for (const uint64_t loop : collecting_)
        if (Entry &setup = queue_[loop % places]; --setup.left == 0)
            setup.end = number + 1;
    while (!collecting_.empty() && this->entry(collecting_.back()).left == 0)
        collecting_.pop_back();
}

bool SnitchCore::is_over(Wait reason) const {
    return reason == Wait::room     ? held_ < settings_.buffer
           : reason == Wait::stream ? awaited_->accepts()
           : reason == Wait::access ? !touches(awaited_address_)
                                    : is_empty();
}

void SnitchCore::end_wait(int64_t at, int64_t &limit) {
    if (!is_over(waits_))
        return;
    waits_ = Wait::none;
    machine_.resume(hart_, at + 1);
    limit = at; // it may be its turn
}

bool SnitchCore::touches(uint32_t address) const {
    for (uint64_t number = first_; number < behind_; ++number)
        if (const Entry &each = entry(number);
            (each.kind == Kind::load || each.kind == Kind::store) && each.operand / 8 == address / 8)
            return true;
    return false;
}

Outcome SnitchCore::before_access(uint32_t address) {
    if (!touches(address))
        return Outcome::done;
    awaited_address_ = address;
    return wait(Wait::access);
}

Outcome SnitchCore::wait(Wait reason) {
    waits_ = reason;
    hart_.state = HartState::asleep;
    return Outcome::asleep;
}

Outcome SnitchCore::repeat(const Op *op, uint32_t iterations) {
    const uint32_t body =
        (static_cast<uint32_t>(op->imm) & 0x7ff) + 1; // bit 31: until the intersection of streams ends
    if ((op->imm & 0x800) != 0 || body > settings_.buffer || collecting_.size() >= settings_.loops) {
        machine_.fail(hart_, op, "frep",
                      (op->imm & 0x800) != 0    ? "loops that end with an intersection of streams are not modelled"
                      : body > settings_.buffer ? "the body of " + std::to_string(body) +
                                                      " instructions is longer than the sequencer's buffer of " +
                                                      std::to_string(settings_.buffer)
                                                : "a loop inside of a loop is more than this sequencer has",
                      hart_.code->pc_of(op));
        return Outcome::fault;
    }
    if (held_ + body > settings_.buffer && held_ != 0 && collecting_.empty())
        return wait(Wait::end);
    Entry setup;
    setup.kind = Kind::loop;
    setup.left = body;
    setup.iterations = iterations & 0xffff;
    setup.inner = op->code == op_frep_i;
    setup.stagger_max = op->rs2 >> 4;
    const uint32_t mask = op->rs2; // bits: rd, rs1, rs2, rs3
    setup.stagger = (mask & 1) << target_place | (mask >> 1 & 1) << first_place | (mask >> 2 & 1) << second_place |
                    (mask >> 3 & 1) << third_place;
    add(setup);
    return Outcome::done;
}

void SnitchCore::wake_self(int64_t time) {
    if (scheduled_)
        return;
    scheduled_ = true;
    turn = hart_.turn;
    machine_.schedule(hart_.group->machine_time(std::max(time, time_)), *this);
}

void SnitchCore::set_streaming(bool on) {
    if (on == is_streaming())
        return;
    const auto count = static_cast<uint32_t>(streams_.size());
    stream_registers_ = on ? count : 0;
    reading_ = 0;
    for (uint32_t i = 0; i < count; ++i)
        if (on) {
            hidden_ready_[i] = ready_[i];
            look_at_stream(i);
        } else {
            ready_[i] = hidden_ready_[i];
        }
}

void SnitchCore::look_at_stream(uint32_t number) {
    const Stream &stream = *streams_[number];
    const bool writes = stream.is_writing();
    if (const uint64_t bit = uint64_t{1} << number; writes == ((reading_ & bit) != 0)) {
        reading_ ^= bit;
        known_setup_ = ~uint64_t{0}; // sources are others
        are_sums_ = sums_ = false;
        for (uint32_t i = 0; i < steps_; ++i)
            find_sources(body_[i]);
    }
    ready_[number] = writes ? hidden_ready_[number] : stream.ready();
    ready_[target_place_of(number)] = writes ? stream.room() : never;
}

// With all formats, rounding modes and flags.
bool SnitchCore::compute_unusual(const Entry &entry, FloatCall &call, FloatResult &result) {
    call.formats = formats_;
    if (!compute_float(hart_, *entry.op, *entry.row, call, result.value))
        return refuse(entry.op, "illegal-instruction", "a rounding mode that does not exist");
    result.unboxed = call.unboxed;
    return true;
}

bool SnitchCore::refuse(const Op *op, const char *kind, const char *why) {
    machine_.fail(hart_, op, kind, why, hart_.code->pc_of(op));
    return false;
}

void SnitchCore::tell_unboxed(const Op *op) {
    machine_.report(Check::unboxed,
                    "an operand of " + std::string(row_of(op->code).name) +
                        " is not boxed (its upper bits are not all ones), so that it counts as a NaN",
                    hart_, hart_.code->pc_of(op), hart_.code->pc_of(op));
}

} // namespace tilewright
