// The queue of a Snitch core's floating-point subsystem, and the loops in it.
#include "devices/snitch_core.h"

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

bool SnitchCore::find_next() {
    while (at_ < behind_) {
        if (entry(at_).kind != Kind::loop)
            return true;
        running_.push_back({at_, 0});
        ++at_;
    }
    return false;
}

void SnitchCore::advance() {
    if (!running_.empty()) {
        Loop &loop = running_.back();
        const Entry &setup = entry(loop.setup);
        if (setup.inner && loop.iteration < setup.iterations) {
            ++loop.iteration;
            return;
        }
    }
    ++at_;
    while (!running_.empty()) {
        Loop &loop = running_.back();
        const Entry &setup = entry(loop.setup);
        if (setup.inner)
            loop.iteration = 0;
        if (setup.end == 0 || at_ != setup.end)
            return;
        if (!setup.inner && loop.iteration < setup.iterations) {
            ++loop.iteration;
            at_ = loop.setup + 1;
            return;
        }
        running_.pop_back();
    }
    forget_done();
}

void SnitchCore::forget_done() {
    for (; first_ < at_; ++first_) {
        const Kind done = entry(first_).kind;
        held_ -= done != Kind::loop ? 1 : 0;
        accesses_ -= done == Kind::load || done == Kind::store ? 1 : 0;
    }
}

void SnitchCore::wake_self(int64_t time) {
    if (scheduled_)
        return;
    scheduled_ = true;
    turn = hart_.turn;
    machine_.schedule(hart_.group->machine_time(std::max(time, time_)), *this);
}

void SnitchCore::go_on(int64_t limit) {
    scheduled_ = false;
    while (planned_ || find_next()) {
        const Entry &next = entry(at_);
        if (!planned_) {
            plan(next);
            if (planned_at_ >= never) // until a stream is set up
                return;
        }
        planned_ = false;
        const int64_t at = planned_at_;
        if (at > limit) {
            scheduled_ = true;
            // The hart may take the port for memory first.
            planned_ = next.kind == Kind::compute;
            machine_.schedule(at, *this);
            return;
        }
        if (!execute(next, planned_places_, at))
            return;
        advance();
        if (waits_ != Wait::none && is_over(waits_)) {
            waits_ = Wait::none;
            machine_.resume(hart_, at + 1);
            limit = at; // it may be its turn
        }
    }
}

void SnitchCore::plan(const Entry &next) {
    uint32_t shift = 0, mask = 0;
    if (!running_.empty()) {
        const Entry &setup = entry(running_.back().setup);
        mask = setup.stagger_mask;
        shift = mask == 0 ? 0 : running_.back().iteration % (setup.stagger_max + 1);
    }
    planned_places_ = places_of(*next.op, shift, mask);
    planned_at_ = issue_time(next, planned_places_);
}

bool SnitchCore::is_over(Wait reason) const {
    return reason == Wait::room     ? held_ < settings_.buffer
           : reason == Wait::stream ? awaited_->accepts()
           : reason == Wait::access ? !touches(awaited_address_)
                                    : is_empty();
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
    setup.stagger_mask = op->rs2 & 15;
    add(setup);
    return Outcome::done;
}

} // namespace tilewright
