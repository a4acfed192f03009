// Control and status registers, traps.
#include "machine/machine.h"

namespace tilewright {

namespace {

enum : uint32_t {
    csr_fflags = 0x001,
    csr_frm = 0x002,
    csr_fcsr = 0x003,
    csr_mstatus = 0x300,
    csr_misa = 0x301,
    csr_mie = 0x304,
    csr_mtvec = 0x305,
    csr_mscratch = 0x340,
    csr_mepc = 0x341,
    csr_mcause = 0x342,
    csr_mtval = 0x343,
    csr_mip = 0x344,
    csr_lpstart0 = 0x7b0, // then end and count; the second loop 4 further
    csr_lpstart0_newer = 0x800,
    csr_privilege = 0xc10,
    csr_mcycle = 0xb00,
    csr_minstret = 0xb02,
    csr_mcycleh = 0xb80,
    csr_minstreth = 0xb82,
    csr_cycle = 0xc00,
    csr_instret = 0xc02,
    csr_cycleh = 0xc80,
    csr_instreth = 0xc82,
    csr_mhartid = 0xf14,
};

// The number of a hardware loop's register at its newer place.
uint32_t at_older_place(uint32_t number) {
    const bool newer = number >= csr_lpstart0_newer && number < csr_lpstart0_newer + 8;
    return newer ? number - csr_lpstart0_newer + csr_lpstart0 : number;
}

uint32_t loop_field(const HardwareLoop &loop, uint32_t which) {
    return which == 0 ? loop.start : which == 1 ? loop.end : loop.count;
}

const char *cause_name(uint32_t cause) {
    switch (cause) {
    case cause_ebreak:
        return "ebreak";
    case cause_ecall:
        return "ecall";
    case cause_load_misaligned:
    case cause_store_misaligned:
        return "misaligned atomic access";
    default:
        return "interrupt";
    }
}

} // namespace

bool Machine::read_csr(Hart &hart, uint32_t number, int64_t time, uint32_t &value) {
    if (hart.extension != nullptr && hart.extension->read_csr(number, value))
        return true;
    number = at_older_place(number);
    const auto cycle = static_cast<uint64_t>(time - hart.cycle_base);
    const uint64_t retired = hart.counters.instructions - static_cast<uint64_t>(hart.instruction_base);
    if (number >= csr_lpstart0 && number < csr_lpstart0 + 8 && number % 4 != 3) {
        value = loop_field(hart.loops[(number - csr_lpstart0) / 4], number % 4);
        return true;
    }
    switch (number) {
    case csr_fflags:
        value = hart.fcsr & 31;
        return hart.group->has_float;
    case csr_frm:
        value = hart.fcsr >> 5;
        return hart.group->has_float;
    case csr_fcsr:
        value = hart.fcsr;
        return hart.group->has_float;
    case csr_mstatus:
        value = hart.mstatus;
        return true;
    case csr_misa:
        value = hart.group->misa;
        return true;
    case csr_mie:
        value = hart.mie;
        return true;
    case csr_mip:
        value = hart.interrupt;
        return true;
    case csr_mtvec:
        value = hart.mtvec;
        return true;
    case csr_mscratch:
        value = hart.mscratch;
        return true;
    case csr_mepc:
        value = hart.mepc;
        return true;
    case csr_mcause:
        value = hart.mcause;
        return true;
    case csr_mtval:
        value = hart.mtval;
        return true;
    case csr_mcycle:
    case csr_cycle:
        value = static_cast<uint32_t>(cycle);
        return true;
    case csr_mcycleh:
    case csr_cycleh:
        value = static_cast<uint32_t>(cycle >> 32);
        return true;
    case csr_minstret:
    case csr_instret:
        value = static_cast<uint32_t>(retired);
        return true;
    case csr_minstreth:
    case csr_instreth:
        value = static_cast<uint32_t>(retired >> 32);
        return true;
    case csr_mhartid:
        value = hart.id;
        return true;
    case csr_privilege:
        value = 3; // machine mode
        return true;
    default:
        return read_performance(hart, number, time, value);
    }
}

bool Machine::write_csr(Hart &hart, uint32_t number, int64_t time, uint32_t value) {
    if (hart.extension != nullptr && hart.extension->write_csr(number, value, time))
        return true;
    number = at_older_place(number);
    if (number >= csr_lpstart0 && number < csr_lpstart0 + 8 && number % 4 != 3) {
        const uint32_t index = (number - csr_lpstart0) / 4;
        HardwareLoop loop = hart.loops[index];
        (number % 4 == 0 ? loop.start : number % 4 == 1 ? loop.end : loop.count) = value;
        set_loop(hart, index, loop.start, loop.end, loop.count);
        return true;
    }
    switch (number) {
    case csr_fflags:
        hart.fcsr = (hart.fcsr & ~31u) | (value & 31);
        return hart.group->has_float;
    case csr_frm:
        hart.fcsr = (hart.fcsr & 31) | (value & 7) << 5;
        return hart.group->has_float;
    case csr_fcsr:
        hart.fcsr = value & 0xff;
        return hart.group->has_float;
    case csr_mstatus:
        hart.mstatus = value;
        return true;
    case csr_misa:
        return true;
    case csr_mie:
        hart.mie = value;
        return true;
    case csr_mtvec:
        hart.mtvec = value;
        return true;
    case csr_mscratch:
        hart.mscratch = value;
        return true;
    case csr_mepc:
        hart.mepc = value & ~1u;
        return true;
    case csr_mcause:
        hart.mcause = value;
        return true;
    case csr_mtval:
        hart.mtval = value;
        return true;
    case csr_mcycle:
        hart.cycle_base = time - value;
        return true;
    case csr_minstret:
        hart.instruction_base = static_cast<int64_t>(hart.counters.instructions) - value;
        return true;
    default:
        return write_performance(hart, number, time, value);
    }
}

void Machine::fail_trap(Hart &hart, const Op *op, uint32_t cause) {
    const uint32_t pc = hart.code->pc_of(op);
    char text[96];
    if (cause == cause_illegal) {
        uint32_t word = 0;
        const auto raw = bytes(pc, 2);
        std::memcpy(&word, raw.data(), raw.size());
        if (Decoder::length(word) == 4)
            if (const auto rest = bytes(pc, 4); rest.size() == 4)
                std::memcpy(&word, rest.data(), 4);
        snprintf(text, sizeof text, "illegal instruction 0x%0*x", Decoder::length(word) * 2, word);
        fail(hart, op, "illegal-instruction", text, pc);
        return;
    }
    snprintf(text, sizeof text, "%s, and no trap handler is set (mtvec is 0)", cause_name(cause));
    fail(hart, op, "trap", text, pc);
}

const Op *Machine::trap(Hart &hart, const Op *op, uint32_t cause, uint32_t value) {
    const uint32_t pc = hart.code->pc_of(op);
    if (hart.mtvec == 0) {
        fail_trap(hart, op, cause);
        return nullptr;
    }
    hart.mepc = pc;
    hart.mcause = cause;
    hart.mtval = value;
    hart.mstatus =
        (hart.mstatus & ~(mstatus_mie | mstatus_mpie)) | ((hart.mstatus & mstatus_mie) != 0 ? mstatus_mpie : 0);
    uint32_t handler = hart.mtvec & ~3u;
    if ((cause >> 31) != 0 && (hart.mtvec & 1) != 0)
        handler += 4 * (cause & 31);
    const Op *destination = instruction_at(hart, handler);
    if (destination == nullptr)
        fail(hart, op, "bad-jump", "the trap handler is not in memory", handler);
    return destination;
}

const Op *Machine::enter_interrupt(Hart &hart, const Op *op) {
    const auto line = static_cast<uint32_t>(std::countr_zero(hart.interrupt & hart.mie));
    if (hart.group->interrupts != nullptr)
        hart.group->interrupts->acknowledge(hart, line);
    return trap(hart, op, cause_interrupt | line, 0);
}

void Machine::leave_trap(Hart &hart) {
    hart.mstatus =
        (hart.mstatus & ~mstatus_mie) | ((hart.mstatus & mstatus_mpie) != 0 ? mstatus_mie : 0) | mstatus_mpie;
}

} // namespace tilewright
