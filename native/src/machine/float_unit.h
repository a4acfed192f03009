// Floating-point instructions of 64-bit registers (isa/xfloat.inc), executed on the state of a hart.
#pragma once

#include "isa/float_ops.h"
#include "machine/hart.h"

namespace tilewright {

// Rounds as the instruction or fcsr says, and keeps the flags; false where that rounding mode does not exist.
inline bool compute_float(Hart &hart, const Op &op, const FloatRow &row, FloatCall &call, uint64_t &result) {
    const auto mode = static_cast<uint32_t>(op.imm);
    call.state = {row.rounds && mode != rounding_dynamic ? mode : hart.fcsr >> 5, hart.fcsr & 31};
    if (call.state.rounding > rounding_mode::nearest_away)
        return false;
    result = row.compute(call);
    hart.fcsr |= call.state.flags;
    return true;
}

// At once, without a unit of its own; `operand` is the integer operand.
inline bool execute_float(Hart &hart, const Op &op, uint32_t operand) {
    const FloatRow &row = float_row(op.code);
    FloatCall call;
    call.a = row.integer_operand ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(operand)}) : hart.f[op.rs1];
    call.b = hart.f[op.rs2];
    call.c = row.reads_d ? hart.f[op.rd] : hart.f[op.rs3];
    uint64_t result = 0;
    if (!compute_float(hart, op, row, call, result))
        return false;
    if (row.integer_result)
        hart.x[op.rd] = static_cast<uint32_t>(result);
    else
        hart.f[op.rd] = result;
    return true;
}

} // namespace tilewright
