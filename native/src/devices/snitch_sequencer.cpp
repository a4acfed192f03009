// The queue of a Snitch core's floating-point subsystem, the loops in it, and how its instructions are executed. All of
// that is in one file, so that the compiler can make one loop of it.
#include "devices/snitch_core.h"
#include "machine/float_unit.h"

// What the loop below does for each instruction; the compiler would leave some of it apart, as it is used twice.
#define HOT [[gnu::always_inline]] inline

namespace tilewright {

namespace {

uint32_t bytes_of(const Op &op) {
    switch (op.code) {
    case op_x_flb:
    case op_x_fsb:
        return 1;
    case op_x_flh:
    case op_x_fsh:
        return 2;
    case op_x_flw:
    case op_x_fsw:
        return 4;
    default:
        return 8;
    }
}

} // namespace

HOT SnitchCore::Places SnitchCore::places_of(const Op &op, uint32_t shift, uint32_t mask) {
    if (mask == 0)
        return {op.rd, op.rs1, op.rs2, op.rs3};
    const auto place = [shift, mask](uint8_t number, uint32_t bit) {
        return static_cast<uint8_t>((mask >> bit & 1) != 0 ? (number + shift) % 32 : number);
    };
    return {place(op.rd, 0), place(op.rs1, 1), place(op.rs2, 2), place(op.rs3, 3)};
}

HOT int64_t SnitchCore::source_ready(uint8_t number) const {
    return is_read_stream(number) ? streams_[number].ready() : ready_[number];
}

HOT int64_t SnitchCore::target_ready(uint8_t number) const {
    return is_stream(number) ? (streams_[number].is_writing() ? streams_[number].room() : never) : ready_[number];
}

HOT int64_t SnitchCore::issue_time(const Entry &entry, const Places &places) const {
    int64_t at = std::max(time_, entry.from);
    if (entry.kind == Kind::load)
        return std::max({at, target_ready(places.rd), hart_.port_free});
    if (entry.kind == Kind::store)
        return std::max({at, source_ready(places.rs2), hart_.port_free});
    const FloatRow &row = *entry.row;
    if (row.reads_a)
        at = std::max(at, source_ready(places.rs1));
    if (row.reads_b)
        at = std::max(at, source_ready(places.rs2));
    if (row.reads_c)
        at = std::max(at, source_ready(places.rs3));
    if (row.reads_d)
        at = std::max(at, source_ready(places.rd));
    if (!row.integer_result)
        at = std::max(at, target_ready(places.rd));
    return at;
}

HOT uint64_t SnitchCore::operand_of(uint8_t number, int64_t time) {
    return is_read_stream(number) ? streams_[number].take(time) : hart_.f[number];
}

HOT void SnitchCore::result_to(const Op *op, uint8_t number, uint64_t value, int64_t ready) {
    if (is_stream(number)) {
        unfenced_ = true;
        streams_[number].put(value, op, ready);
        return;
    }
    hart_.f[number] = value;
    ready_[number] = ready;
}

bool SnitchCore::refuse(const Op *op, const char *kind, const char *why) {
    machine_.fail(hart_, op, kind, why, hart_.code->pc_of(op));
    return false;
}

bool SnitchCore::execute_access(const Entry &entry, const Places &places, int64_t time) {
    const Op *op = entry.op;
    const uint32_t address = entry.operand;
    const bool store = entry.kind == Kind::store;
    const uint32_t size = bytes_of(*op);
    uint64_t value = store ? operand_of(places.rs2, time) : 0;
    int64_t at = time;
    const NearView &near = *hart_.near;
    const uint32_t offset = address - near.base;
    if (offset < near.size && address % size == 0 && !machine_.checks().on()) {
        if (near.bank_slots != nullptr)
            at = near.memory->take_slot(offset, machine_.now(), time);
        hart_.port_free = at + 1;
        if (store)
            std::memcpy(near.data + offset, &value, size);
        else
            std::memcpy(&value, near.data + offset, size);
    } else {
        if (machine_.access(hart_, op, address, size, store ? AccessKind::store : AccessKind::load, value, at) !=
            Outcome::done)
            return false;
        if (offset < near.size)
            hart_.port_free = at + 1;
    }
    if (store) {
        unfenced_ = true;
        return true;
    }
    if (size < 8)
        value |= ~uint64_t{0} << (8 * size);
    result_to(op, places.rd, value, at + entry.latency);
    return true;
}

HOT bool SnitchCore::execute(const Entry &entry, const Places &places, int64_t time) {
    time_ = time + 1;
    ++executed_;
    if (entry.kind != Kind::compute)
        return execute_access(entry, places, time);
    const Op *op = entry.op;
    const FloatRow &row = *entry.row;
    if (row.divides && !settings_.divider) [[unlikely]]
        return refuse(op, "no-divider",
                      "this core has no divider for floats: compute the reciprocal or the root another way");
    FloatCall call;
    call.formats = formats_;
    if (row.reads_a) [[likely]]
        call.a = operand_of(places.rs1, time);
    else if (row.integer_operand)
        call.a = static_cast<uint64_t>(int64_t{static_cast<int32_t>(entry.operand)});
    if (row.reads_b)
        call.b = operand_of(places.rs2, time);
    if (row.reads_c)
        call.c = operand_of(places.rs3, time);
    else if (row.reads_d)
        call.c = hart_.f[places.rd];
    uint64_t result = 0;
    if (!compute_float(hart_, *op, row, call, result)) [[unlikely]]
        return refuse(op, "illegal-instruction", "a rounding mode that does not exist");
    if (call.unboxed) [[unlikely]]
        machine_.report(Check::unboxed,
                        "an operand of " + std::string(row_of(op->code).name) +
                            " is not boxed (its upper bits are not all ones), so that it counts as a NaN",
                        hart_, hart_.code->pc_of(op), hart_.code->pc_of(op));
    const int64_t ready = time + entry.latency;
    if (!row.integer_result) [[likely]] {
        result_to(op, places.rd, result, ready);
        return true;
    }
    hart_.x[places.rd] = static_cast<uint32_t>(result);
    hart_.ready[places.rd] = ready + settings_.back;
    hart_.ready[nowhere] = 0;
    hart_.x[nowhere] = 0;
    unfenced_ = false;
    return true;
}

bool SnitchCore::issue(const Entry &entry, int64_t &at) {
    const Places places = places_of(*entry.op, 0, 0);
    at = issue_time(entry, places);
    if (at >= never)
        return refuse(entry.op, "stream", "an instruction reads a stream that no job brings anything to");
    return execute(entry, places, at);
}

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

HOT bool SnitchCore::find_next() {
    while (at_ < behind_) {
        if (entry(at_).kind != Kind::loop)
            return true;
        running_.push_back({at_, 0});
        innermost_ = &entry(at_);
        ++at_;
    }
    return false;
}

inline void SnitchCore::forget_done() {
    for (; first_ < at_; ++first_) {
        const Kind done = entry(first_).kind;
        held_ -= done != Kind::loop ? 1 : 0;
        accesses_ -= done == Kind::load || done == Kind::store ? 1 : 0;
    }
}

HOT void SnitchCore::advance() {
    if (innermost_ == nullptr) {
        ++at_;
        forget_done();
        return;
    }
    if (!innermost_->inner) [[likely]] {
        if (at_ + 1 != innermost_->end) [[likely]] {
            ++at_;
            return;
        }
        if (Loop &loop = running_.back(); loop.iteration < innermost_->iterations) [[likely]] {
            ++loop.iteration;
            at_ = loop.setup + 1;
            return;
        }
    }
    end_or_repeat();
}

void SnitchCore::end_or_repeat() {
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
        innermost_ = running_.empty() ? nullptr : &entry(running_.back().setup);
    }
    forget_done();
}

void SnitchCore::wake_self(int64_t time) {
    if (scheduled_)
        return;
    scheduled_ = true;
    turn = hart_.turn;
    machine_.schedule(hart_.group->machine_time(std::max(time, time_)), *this);
}

HOT void SnitchCore::plan(const Entry &next) {
    uint32_t shift = 0, mask = 0;
    if (innermost_ != nullptr && innermost_->stagger_mask != 0) {
        mask = innermost_->stagger_mask;
        shift = running_.back().iteration % (innermost_->stagger_max + 1);
    }
    planned_places_ = places_of(*next.op, shift, mask);
    planned_at_ = issue_time(next, planned_places_);
}

void SnitchCore::go_on(int64_t limit) {
    scheduled_ = false;
    while (planned_ || find_next()) {
        Entry &next = entry(at_);
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
        repeated_ += next.repeated ? 1 : 0;
        next.repeated = true;
        advance();
        if (waits_ != Wait::none && is_over(waits_)) {
            waits_ = Wait::none;
            machine_.resume(hart_, at + 1);
            limit = at; // it may be its turn
        }
    }
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
