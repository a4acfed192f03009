// What the observed interpreter looks at besides checks: a profile, a trace, and instructions to stop at.
#include "machine/machine.h"

namespace tilewright {

namespace {

constexpr uint32_t return_address = 1, alternate_return_address = 5; // registers, by convention

bool is_link(uint32_t number) { return number == return_address || number == alternate_return_address; }

} // namespace

void Machine::look_at_harts() {
    following_ = profiling_ || trace_.on();
    observed_ = checks_.on() || profiling_ || trace_.on() || breakpoints_.any() || !marks_.empty();
}

void Machine::record_profile(bool on) {
    profiling_ = on;
    for (const auto &group : groups_)
        for (Code &code : group->code)
            code.profile = on ? std::make_unique<uint64_t[]>(code.size / 2 + 1) : nullptr;
    look_at_harts();
}

void Machine::record_trace(size_t most, std::vector<uint32_t> functions) {
    trace_.switch_on(most, std::move(functions));
    look_at_harts();
}

void Machine::break_at(const std::vector<uint32_t> &addresses) {
    breakpoints_.set(addresses);
    look_at_harts();
}

bool Machine::stops_at(Hart &hart, const Op *op) {
    if (hart.stopped_at == op)
        return false; // goes on from there
    hart.stopped_at = nullptr;
    if (!breakpoints_.has(hart.code->pc_of(op)))
        return false;
    hart.stopped_at = op;
    stopped_hart_ = hart.index;
    return true;
}

void Machine::mark(uint32_t hart, const std::vector<uint32_t> &addresses) {
    marks_.resize(harts_.size());
    marks_.at(hart).set(addresses);
    look_at_harts();
}

// `retired` are instructions, and above them cycles that they waited for results, which are not counted yet.
void Machine::pass(Hart &hart, const Op *op, int64_t time, uint64_t retired) {
    if (hart.marked_at == op)
        return; // it waited for its turn
    hart.marked_at = nullptr;
    const uint32_t pc = hart.code->pc_of(op);
    if (!marks_[hart.index].has(pc))
        return;
    hart.marked_at = op;
    Passage passage{hart.group->machine_time(time), time - hart.started, pc, static_cast<uint16_t>(hart.index),
                    hart.counters};
    passage.counters.instructions += retired & 0xffffffff;
    passage.counters.stall_use += retired >> 32;
    passages_.push_back(passage);
}

void Machine::observe(Hart &hart, const Op *op, const Op *next, int64_t time, int64_t cycles) {
    if (op == nullptr)
        return;
    if (profiling_)
        for (Code &code : hart.group->code) // a jump may have led to another memory
            if (op >= code.ops && op < code.ops + code.size / 2)
                code.profile[static_cast<size_t>(op - code.ops)] += static_cast<uint64_t>(cycles);
    if (trace_.on() && next != nullptr)
        trace_jump(hart, *op, next, time);
}

void Machine::trace_jump(const Hart &hart, const Op &op, const Op *next, int64_t time) {
    TraceKind kind = TraceKind::jump;
    if (op.code == op_jal || op.code == op_jalr) {
        if (is_link(op.rd))
            kind = TraceKind::call;
        else if (op.code == op_jalr && is_link(op.rs1))
            kind = TraceKind::leave;
    } else if (op.code == op_mret) {
        kind = TraceKind::leave;
    } else {
        return;
    }
    const uint32_t pc = hart.code->pc_of(next);
    if (kind != TraceKind::jump || trace_.is_function(pc))
        trace(hart, kind, pc, time);
}

void Machine::trace(const Hart &hart, TraceKind kind, uint32_t pc, int64_t time) {
    if (trace_.on())
        trace_.add({hart.group->machine_time(time), pc, static_cast<uint16_t>(hart.index), kind});
}

} // namespace tilewright
