// A decoded instruction, and what the instruction tables say of each.
#pragma once

#include <cstdint>

namespace tilewright {

// One per halfword of executable memory, so that a branch is an addition to a pointer. Zero means: not decoded yet.
struct Op {
    uint16_t code; // row of the instruction table
    uint8_t rd;    // destination; writes of x0 go to a register that nobody reads
    uint8_t rs1;
    uint8_t rs2; // register, or a second small immediate
    uint8_t rs3;
    uint8_t cycles; // without waiting for memory: the row's own, and stalls that the following instruction causes
    uint8_t stall;  // the part of `cycles` that is such a stall
    int32_t imm;
    int32_t next; // ops to the following instruction
};
static_assert(sizeof(Op) == 16);

// Ops to the instruction behind in memory. Where the body of a hardware loop ends, `next` leads to a trampoline, and the
// trampoline's on.
inline int32_t length_of(const Op *op) {
    constexpr int32_t longest = 2;
    return op->next <= longest ? op->next : op->next + op[op->next].next;
}

// What the pipeline does with an instruction; a machine's description gives each its cycles.
enum class Timing : uint8_t {
    alu,
    load,
    store,
    branch,
    jump,
    jump_register,
    multiply,
    multiply_high,
    divide,
    event_load,
    csr,
    system,
    atomic,
    loop,
    fp,
    fp_load,
    fp_store,
    fp_move,
    fp_divide,
    fp_sqrt,
    // Where pipelines tell these apart; else they are as `fp`, the last three as `alu`.
    fp_double,
    fp_small,
    fp_compare,
    fp_convert,
    fp_dot,
    dma,
    stream,
    simd,
    count
};

// A row of the instruction tables. `operands` says where operands are in the encoding and how they are written:
//   d s t r    integer registers (bits 11:7, 19:15, 24:20, 31:27); `d+` is read as well, `e` is bits 11:7 read only
//   D S T R    the same, floating-point registers
//   o q p a u  immediates of loads, stores, branches, jumps, upper immediates; `j` 12 bits without sign
//   >  E Z     shift amount, control register, 5-bit immediate in place of rs1; `m` the rounding mode (kept in imm)
//   b5 bi      bits 29:25 and 24:20; where both are there, the second is kept in rs2
//   bs bu      6 bits (24:20 and 25) with and without sign; bI bits 24:20 with sign, kept in rs2
//   bg         bits 14:8 (kept in rs2)
//   L          number of a hardware loop (bit 7); b1 12 bits, b2 bits 19:15 (kept in rs2), both in halfwords
struct Row {
    const char *name;
    uint32_t match;
    uint32_t mask;
    const char *operands;
    Timing timing;
};

// Where an instruction has integer registers, by the letters of its operands.
struct IntegerOperands {
    bool rd = false, rs1 = false, rs2 = false, rs3 = false;
    bool writes = false; // rd
};

constexpr IntegerOperands integer_operands(const char *operands) {
    IntegerOperands found;
    for (const char *c = operands; *c; ++c) {
        if (*c == 'b') {
            ++c;
            continue;
        }
        found.rd |= *c == 'd' || *c == 'e';
        found.writes |= *c == 'd';
        found.rs1 |= *c == 's';
        found.rs2 |= *c == 't';
        found.rs3 |= *c == 'r';
    }
    return found;
}

// Whether the result of such an instruction may come while others behind it go on.
constexpr bool comes_late(Timing timing) {
    return timing == Timing::load || timing == Timing::multiply || timing == Timing::multiply_high ||
           timing == Timing::divide || timing == Timing::atomic || timing == Timing::dma || timing == Timing::stream ||
           timing == Timing::simd || timing == Timing::fp || timing == Timing::fp_divide || timing == Timing::fp_sqrt;
}

// Numbers of all rows of all tables, in the order of the tables.
enum OpCode : uint16_t {
    op_undecoded,
    op_illegal,
    op_loop_back, // not an instruction: follows the last one of a hardware loop's body
#define INSN(id, ...) op_##id,
#define FLOAT INSN
#include "isa/all.inc"
#undef FLOAT
#undef INSN
    op_count
};

} // namespace tilewright
