// The queue of a Snitch core's floating-point subsystem, the loops in it, and how its instructions are executed. All of
// that is in one file, so that the compiler can make one loop of it; the steps of loops are found in snitch_steps.cpp.
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

HOT SnitchCore::Places SnitchCore::places_of(const Entry &next) const {
    if (innermost_ == nullptr || innermost_->stagger == 0)
        return next.places;
    // A third register that is the destination goes round with it.
    uint32_t moved = innermost_->stagger & next.used;
    if (next.row->reads_d) {
        constexpr uint32_t third = 1u << third_place;
        moved = (moved & ~third) | (innermost_->stagger >> (target_place - third_place) & next.used & third);
    }
    // There are 32 registers: what is carried beyond them goes.
    return (next.places + moved * running_.back().shift) & ~(moved << 5);
}

HOT int64_t SnitchCore::issue_time(const Entry &entry, Places places) const {
    const auto place = [places](uint32_t where) { return places >> where & 0xff; };
    const int64_t here = std::max(time_, entry.from);
    const int64_t sources = std::max(ready_[place(first_place)], ready_[place(second_place)]);
    const int64_t others = std::max(ready_[place(third_place)], ready_[target_place_of(place(target_place))]);
    const int64_t at = std::max(here, std::max(sources, others));
    return entry.kind == Kind::compute ? at : std::max(at, hart_.port_free);
}

HOT uint64_t SnitchCore::operand_of(uint32_t number, int64_t time) {
    if ((reading_ >> number & 1) == 0)
        return hart_.f[number];
    return take_from(*streams_[number], number, time);
}

HOT uint64_t SnitchCore::operand_of(Stream *stream, uint32_t number, int64_t time) {
    return stream == nullptr ? floats_[number] : take_from(*stream, number, time);
}

HOT uint64_t SnitchCore::take_from(Stream &stream, uint32_t number, int64_t time) {
    uint64_t value = 0;
    if (stream.take_again(value))
        return value;
    value = stream.take(time);
    if (stream.flows()) [[likely]]
        ready_[number] = stream.ready_flowing();
    else
        look_at_stream(number);
    return value;
}

HOT void SnitchCore::result_to(const Op *op, uint32_t number, uint64_t value, int64_t ready) {
    if (is_stream(number)) {
        unfenced_ = true;
        streams_[number]->put(value, op, ready);
        look_at_stream(number);
        return;
    }
    hart_.f[number] = value;
    ready_[number] = ready;
}

bool SnitchCore::execute_access(const Entry &entry, Places places, int64_t time) {
    const Op *op = entry.op;
    const uint32_t address = entry.operand;
    const bool store = entry.kind == Kind::store;
    const uint32_t size = bytes_of(*op);
    uint64_t value = store ? operand_of(places >> second_place & 0xff, time) : 0;
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
    result_to(op, places >> target_place, value, at + entry.latency);
    return true;
}

HOT bool SnitchCore::execute(const Entry &entry, Places places, int64_t time) {
    time_ = time + 1;
    ++(entry.repeated ? repeated_ : executed_);
    if (entry.kind != Kind::compute)
        return execute_access(entry, places, time);
    const FloatRow &row = *entry.row;
    if (!entry.usual && row.divides && !settings_.divider) [[unlikely]]
        return refuse(entry.op, "no-divider",
                      "this core has no divider for floats: compute the reciprocal or the root another way");
    const Op *op = entry.op;
    FloatCall call;
    call.a = (entry.used >> first_place & 1) != 0 ? operand_of(places & 0xff, time)
                                                  : static_cast<uint64_t>(int64_t{static_cast<int32_t>(entry.operand)});
    if ((entry.used >> second_place & 1) != 0)
        call.b = operand_of(places >> second_place & 0xff, time);
    if ((entry.used >> third_place & 1) != 0)
        call.c = operand_of(places >> third_place & 0xff, time);
    FloatResult result{};
    if (entry.usual && is_usual()) [[likely]] {
        result = row.compute_usual(call.a, call.b, call.c, flags());
        hart_.fcsr |= result.flags;
    } else if (!compute_unusual(entry, call, result)) {
        return false;
    }
    if (result.unboxed) [[unlikely]]
        tell_unboxed(op);
    const int64_t ready = time + entry.latency;
    if ((entry.used >> target_place & 1) != 0) [[likely]] {
        result_to(op, places >> target_place, result.value, ready);
        return true;
    }
    hart_.x[op->rd] = static_cast<uint32_t>(result.value);
    hart_.ready[op->rd] = ready + settings_.back;
    hart_.ready[nowhere] = 0;
    hart_.x[nowhere] = 0;
    unfenced_ = false;
    return true;
}

bool SnitchCore::issue(const Entry &entry, int64_t &at) {
    at = issue_time(entry, entry.places);
    if (at >= never)
        return refuse(entry.op, "stream", "an instruction reads a stream that no job brings anything to");
    return execute(entry, entry.places, at);
}

HOT bool SnitchCore::find_next() {
    while (at_ < behind_) {
        if (entry(at_).kind != Kind::loop)
            return true;
        running_.push_back({at_, 0, 0});
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

HOT void SnitchCore::count_turn(Loop &loop, const Entry &setup) {
    ++loop.iteration;
    loop.shift = loop.shift < setup.stagger_max ? loop.shift + 1 : 0;
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
            count_turn(loop, *innermost_);
            at_ = loop.setup + 1;
            find_steps(loop);
            return;
        }
    }
    end_or_repeat();
}

HOT int64_t SnitchCore::step_time(const Step &step, int64_t from) const {
    const int64_t sources = std::max(ready_[step.first], ready_[step.second]);
    const int64_t others = std::max(ready_[step.third], ready_[step.target_place]);
    return std::max(from, std::max(sources, others));
}

HOT int64_t SnitchCore::sum_time(const Step &step, int64_t from) const {
    const int64_t streams = std::max(sum_first_->ready_flowing(), sum_second_->ready_flowing());
    return std::max(std::max(from, ready_[step.target]), streams);
}

[[gnu::noinline]] void SnitchCore::put_in_stream(const Step &step, uint64_t value, int64_t ready) {
    result_to(op_of(step), step.target, value, ready);
}

// The most frequent instructions, where no flag can be new; false where more has to be looked at.
template <bool Wide>
HOT bool SnitchCore::compute_at_once(const Step &step, uint64_t a, uint64_t b, uint64_t c, uint64_t &result) const {
    namespace host = float64_host;
    switch (step.way) {
    case Way::multiply_add:
        result = host::bits(std::fma(host::number(a), host::number(b), host::number(c)));
        return host::is_plain(result) && inexact_;
    case Way::multiply_add_singles:
        if constexpr (Wide)
            return float_lanes::wide::multiply_add_singles(a, b, c, result) && inexact_;
        return float_lanes::multiply_add_singles(a, b, c, result) && inexact_;
    case Way::dot_products: {
        const FloatState before{rounding_mode::nearest_even, inexact_ ? float_flag::inexact : 0};
        FloatState state = before;
        if constexpr (Wide)
            return float_lanes::wide::dot_products(a, b, c, result, state) && state.flags == before.flags;
        return float_lanes::dot_products(a, b, c, result, state) && state.flags == before.flags;
    }
    default:
        return false;
    }
}

template <bool Wide> HOT void SnitchCore::execute(const Step &step, int64_t time) {
    const uint64_t a = operand_of(step.streams[0], step.first, time);
    const uint64_t b = operand_of(step.streams[1], step.second, time);
    const uint64_t c = operand_of(step.streams[2], step.third, time);
    time_ = time + 1;
    uint64_t value = 0;
    if (!compute_at_once<Wide>(step, a, b, c, value)) [[unlikely]]
        value = compute_step(step, a, b, c);
    if (step.to_stream) [[unlikely]] {
        put_in_stream(step, value, time + step.latency);
        return;
    }
    floats_[step.target] = value;
    ready_[step.target] = time + step.latency;
}

// Behind the last step of the last turn.
[[gnu::noinline]] void SnitchCore::end_steps() {
    end_sums();
    running_.back().iteration = innermost_->iterations;
    at_ = innermost_->end - 1;
    steps_ = 0;
    end_or_repeat();
}

HOT bool SnitchCore::begin_turn() {
    step_ = body_.data();
    repeated_ += steps_;
    if (turns_-- != 0) [[likely]] {
        if (are_sums_ && !sums_)
            sums_ = step_->streams[0]->flows() && step_->streams[1]->flows();
        return true;
    }
    end_steps();
    return false;
}

template <bool Wide> HOT bool SnitchCore::take_sum(int64_t now, int64_t &next) {
    const Step &step = *step_;
    uint64_t a = 0, b = 0;
    const bool first_flows = sum_first_->take_flowing(now, a), second_flows = sum_second_->take_flowing(now, b);
    uint64_t &sum = floats_[step.target];
    if (uint64_t value = 0; compute_at_once<Wide>(step, a, b, sum, value)) [[likely]]
        sum = value;
    else
        sum = compute_step(step, a, b, sum);
    ready_[step.target] = now + step.latency;
    ++step_;
    if (!first_flows || !second_flows) [[unlikely]] {
        end_sums();
        return false;
    }
    if (step_ == steps_end_ || waits_ == Wait::stream) [[unlikely]] {
        if (turns_ == 0 || waits_ == Wait::stream)
            return false;
        begin_turn();
    }
    next = sum_time(*step_, now + 1);
    return true;
}

HOT bool SnitchCore::go_to_next_step(int64_t now, int64_t &limit, int64_t &next) {
    time_ = now + 1;
    if (step_ == steps_end_ && !begin_turn()) [[unlikely]] {
        planned_ = false;
        if (waits_ != Wait::none)
            end_wait(now, limit);
        return false;
    }
    if (waits_ == Wait::stream) [[unlikely]] // until the loop ends, the queue stays as it is
        end_wait(now, limit);
    next = sums_ ? sum_time(*step_, time_) : step_time(*step_, time_);
    return true;
}

template <bool Wide> HOT bool SnitchCore::take_step(int64_t now, int64_t &limit, int64_t &next) {
    bool found = false;
    if (sums_) [[likely]] {
        found = take_sum<Wide>(now, next);
    } else {
        const Step &step = *step_;
        ++step_;
        execute<Wide>(step, now);
    }
    if (!found && !go_to_next_step(now, limit, next))
        return false;
    planned_at_ = next;
    return true;
}

template <bool Wide> HOT bool SnitchCore::repeat_steps(int64_t &limit, int64_t &next) {
    next = planned_ ? planned_at_ : step_time(*step_, time_);
    while (next <= limit)
        if (!take_step<Wide>(next, limit, next)) {
            next = never;
            return true;
        }
    planned_at_ = next;
    planned_ = next < never;
    return false;
}

void SnitchCore::end_or_repeat() {
    if (!running_.empty()) {
        Loop &loop = running_.back();
        const Entry &setup = entry(loop.setup);
        if (setup.inner && loop.iteration < setup.iterations) {
            count_turn(loop, setup);
            return;
        }
    }
    ++at_;
    while (!running_.empty()) {
        Loop &loop = running_.back();
        const Entry &setup = entry(loop.setup);
        if (setup.inner)
            loop.iteration = loop.shift = 0;
        if (setup.end == 0 || at_ != setup.end)
            return;
        if (!setup.inner && loop.iteration < setup.iterations) {
            count_turn(loop, setup);
            at_ = loop.setup + 1;
            return;
        }
        running_.pop_back();
        innermost_ = running_.empty() ? nullptr : &entry(running_.back().setup);
    }
    forget_done();
}

template <bool Wide> HOT int64_t SnitchCore::take_cycle(int64_t now) {
    const bool sums = sums_;
    if (int64_t next = now; sums && take_sum<Wide>(now, next)) [[likely]] {
        planned_at_ = next;
        return next;
    }
    return take_rest<Wide>(now, sums);
}

template <bool Wide> HOT int64_t SnitchCore::go_on_with_rest(int64_t now, bool summed) {
    int64_t next = now, limit = now;
    if (summed ? go_to_next_step(now, limit, next) : is_stepping() && take_step<Wide>(now, limit, next)) {
        planned_at_ = next;
        return next;
    }
    return machine_.is_stopping() ? now : take_turn<Wide>(limit);
}

template <bool Wide> HOT void SnitchCore::take_turns(int64_t until) {
    // The units of this cycle in their order, all of one kind. Those that go on in the next one need no queue in between
    // while nobody else comes.
    std::array<SnitchCore *, 64> units; // NOLINT: filled as far as it is used
    Schedule &times = machine_.times();
    size_t count = 1;
    units[0] = this;
    for (Scheduled *unit = nullptr; count < units.size() && (unit = times.pop_unit()) != nullptr;)
        units[count++] = static_cast<SnitchCore *>(unit);
    for (int64_t now = times.now();; ++now) {
        size_t kept = 0;
        const auto go_on_at = [&](SnitchCore &unit, int64_t next) {
            if (next == now + 1) [[likely]]
                units[kept++] = &unit;
            else if (next < never)
                times.push(unit, next);
            else // until a stream is set up
                unit.scheduled_ = unit.planned_ = false;
        };
        if (count == 1)
            go_on_at(*units[0], machine_.is_stopping() ? now : units[0]->take_turn<Wide>(times.alone(until)));
        else
            for (size_t i = 0; i < count; ++i) {
                SnitchCore &unit = *units[i];
                go_on_at(unit, unit.take_cycle<Wide>(now));
            }
        count = kept;
        if (kept == 0)
            return;
        if (now + 1 < until && !machine_.is_stopping() && times.advance_alone(now + 1))
            continue;
        for (size_t i = 0; i < kept; ++i)
            times.push(*units[i], now + 1);
        return;
    }
}

template <bool Wide> HOT int64_t SnitchCore::go_through(int64_t limit) {
    int64_t next = never;
    while ((steps_ == 0 || repeat_steps<Wide>(limit, next)) && go_through_queue(limit, next))
        ;
    scheduled_ = next < never;
    return next;
}

template <> [[gnu::noinline]] int64_t SnitchCore::take_turn<false>(int64_t limit) { return go_through<false>(limit); }
template <> [[gnu::noinline]] int64_t SnitchCore::take_rest<false>(int64_t now, bool summed) {
    return go_on_with_rest<false>(now, summed);
}

#ifdef WIDE
template <> [[gnu::noinline]] WIDE int64_t SnitchCore::take_turn<true>(int64_t limit) {
    return go_through<true>(limit);
}
template <> [[gnu::noinline]] WIDE int64_t SnitchCore::take_rest<true>(int64_t now, bool summed) {
    return go_on_with_rest<true>(now, summed);
}

WIDE void SnitchCore::take_turns_wide(int64_t until) { take_turns<true>(until); }
#endif

void SnitchCore::go_on(int64_t until) {
#ifdef WIDE
    static const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                             __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2");
    if (wide)
        return take_turns_wide(until);
#endif
    take_turns<false>(until);
}

bool SnitchCore::go_through_queue(int64_t &limit, int64_t &next) {
    while (planned_ || find_next()) {
        Entry &first = entry(at_);
        if (!planned_) {
            planned_places_ = places_of(first);
            planned_at_ = issue_time(first, planned_places_);
            if (planned_at_ >= never) // until a stream is set up
                return false;
        }
        planned_ = false;
        const int64_t at = planned_at_;
        if (at > limit) {
            next = at;
            // The hart may take the port for memory first.
            planned_ = first.kind == Kind::compute;
            return false;
        }
        if (!execute(first, planned_places_, at))
            return false;
        first.repeated = true;
        advance();
        if (waits_ != Wait::none)
            end_wait(at, limit);
        if (steps_ != 0)
            return true;
    }
    return false;
}

} // namespace tilewright
