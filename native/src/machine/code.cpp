// Decoded instructions: where they are, how they come, and the ends of hardware loops in them.
#include "machine/machine.h"

#include <string_view>

namespace tilewright {

namespace {

// The four bytes at an address; zeros behind the end of the memory.
uint32_t word_at(const Code &code, uint32_t address) {
    const uint32_t offset = address - code.base;
    uint32_t word = 0;
    if (offset < code.size)
        std::memcpy(&word, code.memory->data + offset, std::min<uint32_t>(sizeof word, code.size - offset));
    return word;
}

} // namespace

Code *Machine::code_at(Hart &hart, uint32_t &address) {
    if (hart.code != nullptr && address - hart.code->base < hart.code->size)
        return hart.code;
    for (const Alias &alias : aliases_)
        if (address - alias.base < alias.size && !alias.test_and_set)
            address = alias.memory->base + (address - alias.base);
    for (Code &code : hart.group->code)
        if (address - code.base < code.size)
            return &code;
    return nullptr;
}

const Op *Machine::instruction_at(Hart &hart, uint32_t address) {
    Code *code = code_at(hart, address);
    if (code == nullptr)
        return nullptr;
    hart.code = code;
    return code->ops + (address - code->base) / 2;
}

void Machine::decode(const HartGroup &group, const Code &code, const Op *op) {
    const uint32_t pc = code.pc_of(op);
    const uint32_t word = word_at(code, pc);
    const uint32_t following = word_at(code, pc + static_cast<uint32_t>(Decoder::length(word)));
    Op decoded = group.decoder->decode(word, following);
    if (row_of(decoded.code).timing == Timing::branch) {
        const int64_t to = int64_t{pc - code.base} + decoded.imm;
        if (to < 0 || to >= code.size)
            decoded.code = op_illegal;
        // A branch writes no register, so there is room for what it costs when taken.
        decoded.rd = group.pipeline.taken_branch;
    }
    code.ops[op - code.ops] = decoded;
}

// The instruction at `end` is made to lead to its trampoline, whose `stall` is then that of the instruction behind, and
// whose `cycles` is the stall on the way back to the start in `imm`: it is looked for once, not at each setup.
void Machine::move_loop(Hart &hart, HardwareLoop &loop, uint32_t start, uint32_t end) {
    loop = HardwareLoop{start, end, loop.count, nullptr, nullptr, 0};
    const Code *code = code_at(hart, end);
    if (code == nullptr || (end & 1) != 0)
        return;
    Op *last = code->ops + (end - code->base) / 2;
    Op *trampoline = last + code->trampoline_distance();
    if (trampoline->code != op_loop_back) {
        if (last->code == op_undecoded)
            decode(*hart.group, *code, last);
        *trampoline = Op{};
        trampoline->code = op_loop_back;
        trampoline->stall = last->stall;
        trampoline->imm = 1; // no start yet
        trampoline->next = last->next - code->trampoline_distance();
        last->cycles = static_cast<uint8_t>(last->cycles - last->stall);
        last->stall = 0;
        last->next = code->trampoline_distance();
    }
    loop.behind = trampoline;
    // A start outside of the memory becomes the op behind its end, which is never an instruction.
    const bool inside = code_at(hart, start) == code;
    loop.first = code->ops + (inside ? start - code->base : code->size) / 2;
    if (inside && trampoline->imm != static_cast<int32_t>(start)) {
        trampoline->imm = static_cast<int32_t>(start);
        trampoline->cycles = hart.group->decoder->decode(word_at(*code, end), word_at(*code, start)).stall;
    }
    loop.stall = trampoline->cycles;
}

// An access that moves its pointer on does so also when the hart slept in it.
static void increment_pointer(Hart &hart) {
    const std::string_view operands = row_of(hart.op->code).operands;
    if (operands.find('!') == std::string_view::npos)
        return;
    const Op &op = *hart.op;
    const char distance = operands[operands.find('(') - 1];
    const uint32_t by = distance == 't'   ? hart.x[op.rs2]
                        : distance == 'e' ? hart.x[op.rd]
                                          : static_cast<uint32_t>(op.imm);
    if (op.rs1 != 0)
        hart.x[op.rs1] += by;
}

void Machine::go_on(Hart &hart) {
    increment_pointer(hart);
    hart.pending = hart.op->stall;
    hart.op += hart.op->next;
    if (hart.op->code == op_loop_back) {
        hart.op = loop_back(hart, hart.op, hart.pending);
        hart.time += hart.pending;
    }
    hart.counters.stall_use += hart.pending;
}

} // namespace tilewright
