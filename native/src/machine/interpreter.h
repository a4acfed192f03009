// The loop that executes instructions. Harts run ahead alone until they touch something that others see; loads, stores
// and the like wait for their turn, so that all of them happen in the order of time.
#pragma once

#include <algorithm>

#include "isa/float32.h"
#include "isa/simd.h"
#include "machine/arithmetic.h"
#include "machine/float_unit.h"
#include "machine/machine.h"
#include "machine/semantics.h"

namespace tilewright {

template <class Divisor> static int64_t divide_wait(const DivideTiming &timing, uint32_t dividend, Divisor divisor) {
    if (divisor == 0)
        return std::is_signed_v<Divisor> ? timing.signed_zero : timing.unsigned_zero;
    const bool negative = std::is_signed_v<Divisor> && static_cast<int32_t>(divisor) < 0;
    const auto magnitude = negative ? 0u - static_cast<uint32_t>(divisor) : static_cast<uint32_t>(divisor);
    int zeros = std::countl_zero(magnitude);
    if (timing.by_difference) {
        const bool below = std::is_signed_v<Divisor> && static_cast<int32_t>(dividend) < 0;
        zeros = std::max(zeros - std::countl_zero(below ? 0u - dividend : dividend), 0);
    }
    return zeros + (negative ? timing.negative : 0);
}

// The cycle that a counter shows to an instruction, which some machines read before they wait for it.
static int64_t counter_time(Hart &hart, const Op *op, int64_t time) {
    const bool early = hart.group->early_counters && op == hart.missed;
    hart.missed = nullptr;
    return early ? hart.missed_at : time;
}

// Tells instructions of different cache lines apart. The last halfword of a line counts to the next line, because an
// instruction there is fetched together with it.
static uintptr_t line_key(const Op *op) {
    constexpr int line_shift = 7; // a line of 16 bytes is 8 decoded instructions of 16 bytes
    return reinterpret_cast<uintptr_t>(op + 1) >> line_shift;
}

template <bool Observed, bool Scoreboard> Stop Machine::run_harts(int64_t until) {
    static const void *const labels[] = {
        &&l_undecoded,
        &&l_illegal,
        &&l_loop_back,
#define INSN(id, ...) &&l_##id,
#define FLOAT(id, name, match, mask, operands, ...)                                                                    \
    integer_operands(operands).writes ? &&l_float_to_integer                                                           \
    : integer_operands(operands).rs1  ? &&l_float_from_integer                                                         \
                                      : &&l_float,
#include "isa/all.inc"
#undef FLOAT
#undef INSN
    };
    constexpr int64_t past = -1;          // a limit that lets nothing more through
    constexpr int64_t longest_run = 4096; // cycles that a hart runs without looking up
    Hart *hart = nullptr;
    const Op *op = nullptr, *observed_op = nullptr;
    int64_t t = 0, limit = 0, horizon = 0, observed_time = 0;
    uintptr_t line = 0;
    uint64_t retired = 0;
    uint32_t pending = 0;
    Outcome outcome = Outcome::done;
    [[maybe_unused]] const bool checking = checks_.on();
    [[maybe_unused]] const bool crowded = harts_.size() > 32; // more than the host's first cache holds

pick:
    for (;;) {
        if (stopping_) [[unlikely]]
            return fault_ ? Stop::fault : Stop::exited;
        if (Scheduled *due = schedule_.pop(); due != nullptr) {
            if (Scoreboard && crowded)
                prefetch(due->next_in_slot);
            if (!Scoreboard || due->is_hart) [[likely]] {
                hart = static_cast<Hart *>(due);
                break;
            }
            // What a device does in this cycle comes behind it.
            static_cast<HartExtension *>(due)->go_on(until);
            continue;
        }
        // Devices come after the harts in a cycle: a register read in it still shows what was there before.
        if (schedule_.event_due()) {
            happen(schedule_.pop_event());
            continue;
        }
        const int64_t next = schedule_.next();
        if (next >= until)
            return next >= never ? Stop::deadlock : Stop::cycle_limit;
        schedule_.advance(next);
    }
    op = hart->op;
    t = hart->time;
    line = hart->line;
    if constexpr (!Scoreboard)
        pending = hart->pending;
    // Until when nobody else does anything.
    limit = t;
    if (!schedule_.others_now())
        limit = std::max(t, hart->group->own_time(std::min(schedule_.next(), until) - 1));
    horizon = t + longest_run;
    retired = 0;
    if constexpr (Observed) {
        observed_time = t;
        observed_op = nullptr;
    }
    if (hart->interrupt != 0) [[unlikely]] {
        if ((hart->interrupt & hart->mie) != 0 && (hart->mstatus & mstatus_mie) != 0) {
            const Op *handler = enter_interrupt(*hart, op);
            if (handler == nullptr)
                goto stopped;
            op = handler;
            if constexpr (Observed)
                trace(*hart, TraceKind::call, hart->code->pc_of(op), t);
        }
    }
    DISPATCH;

yield:
    // An instruction that was not its turn is still to be executed.
    if (Observed && following_)
        observe(*hart, observed_op, op == observed_op ? nullptr : op, t, t - observed_time);
    hart->op = op;
    hart->time = t;
    hart->line = line;
    if constexpr (!Scoreboard)
        hart->pending = pending;
    COUNT_RETIRED;
    schedule_.push(*hart, hart->group->machine_time(t), hart->stood_back == t);
    goto pick;

interrupted: // an access put the hart to sleep or failed
sleeping:
stopped:
    if constexpr (Observed) {
        if (following_)
            observe(*hart, observed_op, nullptr, t, t - observed_time);
        if (hart->state == HartState::asleep)
            trace(*hart, TraceKind::asleep, hart->code->pc_of(op), t);
    }
    hart->op = op;
    hart->time = t;
    hart->line = line;
    COUNT_RETIRED;
    goto pick;

[[maybe_unused]] observe:
    if constexpr (Observed) {
        if (op->code == op_loop_back)
            goto l_loop_back;
        if (following_) {
            observe(*hart, observed_op, op, t, t - observed_time);
            observed_op = op;
            observed_time = t;
        }
        if (hart->suspects != 0) [[unlikely]]
            check_registers(*hart, op);
        if (hart->index == stepping_ && retired != 0) [[unlikely]] {
            stepping_ = nobody;
            until = now(); // ends the run as soon as the hart is put back
            goto yield;
        }
        if (!marks_.empty())
            pass(*hart, op, t, retired);
        if (breakpoints_.any() && stops_at(*hart, op)) [[unlikely]] {
            until = now();
            goto yield;
        }
        if (line_key(op) == line)
            goto *labels[op->code];
    }

fetch:
    // Trampolines stand outside of the code; they are no instructions, so nothing is fetched.
    if (op->code == op_loop_back)
        goto l_loop_back;
    if (!is_fetched(*hart, op)) {
        MY_TURN;
        // While the line comes, a result that the instruction would wait for comes as well.
        const int64_t wait = fetch_line(*hart, op, t - pending);
        const int64_t hidden = std::min<int64_t>(pending, wait);
        COUNT.stall_use -= static_cast<uint64_t>(hidden);
        COUNT.stall_fetch += static_cast<uint64_t>(wait);
        hart->missed = op;
        hart->missed_at = t - pending;
        t += wait - hidden;
        pending -= static_cast<uint32_t>(hidden);
    }
    line = line_key(op);
    goto *labels[op->code];

l_undecoded:
    decode(*hart->group, *hart->code, op);
    goto *labels[op->code];

l_illegal:
    TRAP(cause_illegal, 0)

l_loop_back:
    {
        uint32_t stall = 0;
        op = loop_back(*hart, op, stall);
        if constexpr (!Scoreboard)
            pending = stall;
        t += stall;
        retired += uint64_t{stall} << 32;
    }
    if (t > horizon) [[unlikely]]
        goto yield;
    DISPATCH;

l_float:
    {OFFLOAD(0)} NEXT;

l_float_from_integer:
    {WAIT_FOR_REGISTERS("s") OFFLOAD(RS1)} NEXT;

l_float_to_integer:
    {WAIT_FOR_REGISTERS("d") OFFLOAD(0)} NEXT;

#define INSN(id, name, match, mask, operands, timing, ...)                                                             \
    l_##id : {                                                                                                         \
        WAIT_FOR_REGISTERS(operands)                                                                                   \
        TAKE_UNIT(Timing::timing);                                                                                     \
        __VA_ARGS__;                                                                                                   \
        RESULT_COMES_LATE(Timing::timing, operands)                                                                    \
    }                                                                                                                  \
    NEXT;
#define FLOAT(...)
#include "isa/all.inc"
#undef FLOAT
#undef INSN
}

} // namespace tilewright
