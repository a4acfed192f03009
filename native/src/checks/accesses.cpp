// Loads and stores of harts: against what others do, the end of the stack, and bytes that nothing wrote.
#include "checks/checks.h"

#include "isa/decode.h"
#include "machine/hart.h"
#include "machine/memory.h"

#include <algorithm>

namespace tilewright {

namespace {

// A stack pointer further below is not an overflow but set elsewhere, or not yet set.
constexpr uint32_t deepest_overflow = 1 << 20;
constexpr uint32_t first_float = 32; // among the numbers of registers

// Which fields of an instruction are registers, and what it does with them.
struct RegisterUse {
    uint8_t reads[4]; // rd, rs1, rs2, rs3: none, integer or floating-point
    uint8_t writes;   // rd
    bool stores;      // rs2 to memory
};
enum : uint8_t { none, integer, floating };

RegisterUse use_of(const Row &row) {
    RegisterUse use{};
    for (const char *c = row.operands; *c != 0; ++c) {
        switch (*c) {
        case 'd':
        case 'D':
            use.writes = *c == 'd' ? integer : floating;
            if (c[1] == '+')
                use.reads[0] = use.writes;
            break;
        case 'e':
            use.reads[0] = integer;
            break;
        case 's':
        case 'S':
            use.reads[1] = *c == 's' ? integer : floating;
            break;
        case 't':
        case 'T':
            use.reads[2] = *c == 't' ? integer : floating;
            break;
        case 'r':
        case 'R':
            use.reads[3] = *c == 'r' ? integer : floating;
            break;
        case 'b': // an immediate of two letters
            ++c;
            break;
        default:
            break;
        }
    }
    use.stores = row.timing == Timing::store || row.timing == Timing::fp_store;
    return use;
}

const RegisterUse &use_of(uint16_t code) {
    static const std::vector<RegisterUse> uses = [] {
        std::vector<RegisterUse> all;
        for (uint16_t i = 0; i < op_count; ++i)
            all.push_back(use_of(row_of(i)));
        return all;
    }();
    return uses[code];
}

uint32_t number_of(uint8_t kind, uint32_t field) { return kind == floating ? first_float + field : field; }

// Instructions that only pass a value on, or the part of it that a narrower type keeps; the register that it was in.
std::optional<uint32_t> moved_from(const Op &op) {
    switch (op.code) {
    case op_addi:
        return op.imm == 0 ? std::optional<uint32_t>(op.rs1) : std::nullopt;
    case op_andi:
        return op.imm == 0xff ? std::optional<uint32_t>(op.rs1) : std::nullopt;
    case op_slli:
    case op_srli:
    case op_srai:
        return op.imm == 16 || op.imm == 24 ? std::optional<uint32_t>(op.rs1) : std::nullopt;
    case op_add:
        return op.rs1 == 0 ? std::optional<uint32_t>(op.rs2) : std::nullopt;
    default:
        return std::nullopt;
    }
}

std::string bytes(uint32_t count) { return count == 1 ? "1 byte" : std::to_string(count) + " bytes"; }

// Whether other bytes of the same 8 were written: the largest gap that the alignment of C's types leaves in a struct.
bool near_written(const HartAccess &access) {
    const uint8_t *group = access.shadow() - access.address() % 8;
    return std::any_of(group, group + 8, [](uint8_t state) { return (state & byte_written) != 0; });
}

bool any_written(const HartAccess &access) {
    return std::any_of(access.shadow(), access.shadow() + access.size,
                       [](uint8_t s) { return (s & byte_written) != 0; });
}

} // namespace

bool Checks::touches_flag(const HartAccess &access) const { return access.memory.writes[access.offset] == of_flag; }

void Checks::check_load(const HartAccess &access) {
    Hart &hart = access.hart;
    check_stack(access, false);
    std::optional<Conflict> conflict;
    if (touches_flag(access)) {
        acquire_flag(hart, access.address());
    } else {
        const uint32_t place = places_.number({hart.index, access.pc, hart.frame});
        conflict = read({clocks_[hart.index], hart.epoch, access.memory, access.offset, access.size}, place);
    }
    if (conflict) {
        report_race(access, false, *conflict);
    } else if (!any_written(access)) {
        suspect(access);
        // To be looked at again the next time.
        std::replace(access.memory.reads + access.offset, access.memory.reads + access.offset + access.size, hart.epoch,
                     no_epoch);
    }
}

void Checks::check_store(const HartAccess &access) {
    Hart &hart = access.hart;
    check_stack(access, true);
    if (touches_flag(access)) {
        release_flag(hart, access.address());
    } else {
        const uint32_t place = places_.number({hart.index, access.pc, hart.frame});
        if (const auto conflict =
                written({clocks_[hart.index], hart.epoch, access.memory, access.offset, access.size}, place))
            report_race(access, true, *conflict);
    }
    for (uint32_t i = 0; i < access.size; ++i)
        access.shadow()[i] |= byte_written;
    if (!access.hart.stores_unwritten)
        return;
    // A copy of what was never written is as if never written.
    access.hart.stores_unwritten = false;
    for (uint32_t i = 0; i < access.size; ++i) {
        access.shadow()[i] &= static_cast<uint8_t>(~byte_written);
        if (!touches_flag(access))
            access.memory.reads[access.offset + i] = no_epoch;
    }
    const uint32_t number = number_of(use_of(access.op.code).reads[2], access.op.rs2);
    Suspect &origin = suspects_[access.hart.index][number];
    if (!origin.like_padding && !origin.reported)
        report_suspect(access.hart, number, Check::unused_read, "copies");
    origin.reported = true;
}

void Checks::check_device_store(Hart &hart, const Op &op) {
    if (!hart.stores_unwritten)
        return;
    hart.stores_unwritten = false;
    report_suspect(hart, number_of(use_of(op.code).reads[2], op.rs2), Check::uninitialised_read, "reads");
}

void Checks::check_stack(const HartAccess &access, bool store) {
    const uint32_t low = access.hart.stack_low, pointer = access.hart.x[stack_pointer];
    if (pointer >= low || low - pointer > deepest_overflow || access.where >= low || access.where < pointer)
        return;
    report(Check::stack_overflow,
           std::string(store ? "writes " : "reads ") + bytes(low - access.where) + " below the end of the stack",
           access.hart, access.pc, access.where, access.time);
}

void Checks::suspect(const HartAccess &access) {
    Hart &hart = access.hart;
    if (suspects_.size() <= hart.index)
        suspects_.resize(hart.index + 1);
    if (access.op.rd == nowhere) {
        report(Check::unused_read, "reads " + bytes(access.size) + " never written, and does not use the value", hart,
               access.pc, access.address(), access.time);
        return;
    }
    const uint32_t number = number_of(use_of(access.op.code).writes, access.op.rd);
    hart.suspects |= uint64_t{1} << number;
    suspects_[hart.index][number] = {access.pc,   access.address(),     access.size,
                                     access.time, near_written(access), false};
}

void Checks::report_suspect(Hart &hart, uint32_t number, Check check, const char *does) {
    Suspect &origin = suspects_[hart.index][number];
    origin.reported = true;
    // Before the words are put together, which takes time.
    if (found_again(check, hart.index, origin.pc))
        return;
    const char *then = check == Check::unused_read && does[0] == 'r' ? ", and does not use the value" : "";
    report(check, std::string(does) + " " + bytes(origin.size) + " never written" + then, hart, origin.pc,
           origin.address, origin.time);
}

void Checks::check_registers(Hart &hart, const Op &op) {
    const RegisterUse &use = use_of(op.code);
    const uint32_t fields[] = {op.rd, op.rs1, op.rs2, op.rs3};
    const auto is_suspect = [&](uint32_t number) { return (hart.suspects >> number & 1) != 0; };
    hart.stores_unwritten = false;
    if (const auto from = moved_from(op); from && is_suspect(*from) && op.rd != nowhere) {
        if (op.rd != *from) {
            drop(hart, op.rd);
            suspects_[hart.index][op.rd] = suspects_[hart.index][*from];
            suspects_[hart.index][*from].reported = true;
            hart.suspects |= uint64_t{1} << op.rd;
        }
        return;
    }
    for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t number = number_of(use.reads[i], fields[i]);
        if (use.reads[i] == none || !is_suspect(number))
            continue;
        if (i == 2 && use.stores) {
            hart.stores_unwritten = true;
        } else {
            report_suspect(hart, number, Check::uninitialised_read, "reads");
            hart.suspects &= ~(uint64_t{1} << number);
        }
    }
    if (use.writes != none && op.rd != nowhere)
        drop(hart, number_of(use.writes, op.rd));
}

void Checks::drop(Hart &hart, uint32_t number) {
    if ((hart.suspects >> number & 1) == 0)
        return;
    if (!suspects_[hart.index][number].reported)
        report_suspect(hart, number, Check::unused_read, "reads");
    hart.suspects &= ~(uint64_t{1} << number);
}

const std::vector<Finding> &Checks::findings() {
    for (Hart &hart : harts_)
        for (uint32_t number = 0; number < 64 && hart.suspects != 0; ++number)
            if ((hart.suspects >> number & 1) != 0 && !suspects_[hart.index][number].reported)
                report_suspect(hart, number, Check::unused_read, "reads");
    return findings_;
}

} // namespace tilewright
