#include "isa/decode.h"

#include <stdexcept>
#include <string_view>

namespace tilewright {

const std::array<const char *, static_cast<size_t>(Timing::count)> timing_names = {
    "alu",      "load",       "store",     "branch",  "jump",      "jump_register", "multiply",   "multiply_high",
    "divide",   "event_load", "csr",       "system",  "atomic",    "loop",          "fp",         "fp_load",
    "fp_store", "fp_move",    "fp_divide", "fp_sqrt", "fp_double", "fp_small",      "fp_compare", "fp_convert",
    "fp_dot",   "dma",        "stream",    "simd",
};

namespace {

constexpr Row rows[] = {
    {"undecoded", 0, 0, "", Timing::alu},
    {"illegal", 0, 0, "", Timing::alu},
    {"loop", 0, 0, "", Timing::alu},
#define INSN(id, name, match, mask, operands, timing, ...) {name, match, mask, operands, Timing::timing},
#define FLOAT INSN
#include "isa/all.inc"
#undef FLOAT
#undef INSN
};

#define INSN(...) +1
#define FLOAT INSN
constexpr int rv32i_rows = 0
#include "isa/rv32i.inc"
    ;
constexpr int rv32m_rows = 0
#include "isa/rv32m.inc"
    ;
constexpr int zicsr_rows = 0
#include "isa/zicsr.inc"
    ;
constexpr int rv32a_rows = 0
#include "isa/rv32a.inc"
    ;
constexpr int rv32f_rows = 0
#include "isa/rv32f.inc"
    ;
constexpr int zfinx_rows = 0
#include "isa/zfinx.inc"
    ;
constexpr int xpulpimg_rows = 0
#include "isa/xpulpimg.inc"
    ;
constexpr int xpulpv2_rows = 0
#include "isa/xpulpv2.inc"
    ;
constexpr int xfloat_rows = 0
#include "isa/xfloat.inc"
    ;
constexpr int xdma_rows = 0
#include "isa/xdma.inc"
    ;
constexpr int xssr_rows = 0
#include "isa/xssr.inc"
    ;
constexpr int xfrep_rows = 0
#include "isa/xfrep.inc"
    ;
#undef FLOAT
#undef INSN

struct Table {
    std::string_view name;
    int rows;
};
// In the order of all.inc.
constexpr Table tables[] = {{"rv32i", rv32i_rows},       {"rv32m", rv32m_rows},     {"zicsr", zicsr_rows},
                            {"rv32a", rv32a_rows},       {"rv32f", rv32f_rows},     {"zfinx", zfinx_rows},
                            {"xpulpimg", xpulpimg_rows}, {"xpulpv2", xpulpv2_rows}, {"xfloat", xfloat_rows},
                            {"xdma", xdma_rows},         {"xssr", xssr_rows},       {"xfrep", xfrep_rows}};

// Whether a table is part of an extension.
bool includes(std::string_view extension, std::string_view table) {
    return extension == table || (extension == "xpulpv2" && table == "xpulpimg");
}

constexpr uint32_t field(uint32_t word, int high, int low) { return (word >> low) & ((2u << (high - low)) - 1); }

constexpr int32_t extended(uint32_t value, int bits) {
    return static_cast<int32_t>(value << (32 - bits)) >> (32 - bits);
}

int32_t load_immediate(uint32_t w) { return static_cast<int32_t>(w) >> 20; }
int32_t store_immediate(uint32_t w) { return extended(field(w, 31, 25) << 5 | field(w, 11, 7), 12); }
int32_t branch_offset(uint32_t w) {
    return extended(field(w, 31, 31) << 12 | field(w, 7, 7) << 11 | field(w, 30, 25) << 5 | field(w, 11, 8) << 1, 13);
}
int32_t jump_offset(uint32_t w) {
    return extended(field(w, 31, 31) << 20 | field(w, 19, 12) << 12 | field(w, 20, 20) << 11 | field(w, 30, 21) << 1,
                    21);
}

const char *const integer_names[] = {"zero", "ra", "sp", "gp", "tp",  "t0",  "t1", "t2", "s0", "s1", "a0",
                                     "a1",   "a2", "a3", "a4", "a5",  "a6",  "a7", "s2", "s3", "s4", "s5",
                                     "s6",   "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6"};
const char *const float_names[] = {"ft0", "ft1", "ft2", "ft3", "ft4",  "ft5",  "ft6", "ft7", "fs0",  "fs1", "fa0",
                                   "fa1", "fa2", "fa3", "fa4", "fa5",  "fa6",  "fa7", "fs2", "fs3",  "fs4", "fs5",
                                   "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", "ft10", "ft11"};
const char *const rounding_names[] = {"rne", "rtz", "rdn", "rup", "rmm", "?", "?", "dyn"};

// One operand of an instruction, as its row writes it.
struct Operand {
    enum Kind { literal, integer, floating, immediate, upper, second, target, second_target, rounding } kind;
    char letter;    // of a register
    bool reads;     // a register that is read
    bool writes;    // a register that is written
    int64_t number; // register, immediate, distance to a target, or a character
};

// Calls `visit` with each operand of an instruction.
template <class Visit> void for_each_operand(const char *operands, uint32_t w, Visit visit) {
    const bool two_small = std::string_view(operands).find("b5") != std::string_view::npos;
    for (const char *c = operands; *c; ++c) {
        const bool also_read = c[1] == '+';
        switch (*c) {
        case 'd':
            visit(Operand{Operand::integer, 'd', also_read, true, field(w, 11, 7)});
            break;
        case 'e':
            visit(Operand{Operand::integer, 'd', true, false, field(w, 11, 7)});
            break;
        case 's':
            visit(Operand{Operand::integer, 's', true, false, field(w, 19, 15)});
            break;
        case 't':
            visit(Operand{Operand::integer, 't', true, false, field(w, 24, 20)});
            break;
        case 'r':
            visit(Operand{Operand::integer, 'r', true, false, field(w, 31, 27)});
            break;
        case 'D':
            visit(Operand{Operand::floating, 'd', also_read, true, field(w, 11, 7)});
            break;
        case 'S':
            visit(Operand{Operand::floating, 's', true, false, field(w, 19, 15)});
            break;
        case 'T':
            visit(Operand{Operand::floating, 't', true, false, field(w, 24, 20)});
            break;
        case 'R':
            visit(Operand{Operand::floating, 'r', true, false, field(w, 31, 27)});
            break;
        case 'o':
            visit(Operand{Operand::immediate, 0, false, false, load_immediate(w)});
            break;
        case 'j':
            visit(Operand{Operand::immediate, 0, false, false, field(w, 31, 20)});
            break;
        case 'q':
            visit(Operand{Operand::immediate, 0, false, false, store_immediate(w)});
            break;
        case 'u':
            visit(Operand{Operand::upper, 0, false, false, static_cast<int32_t>(w & 0xfffff000)});
            break;
        case '>':
            visit(Operand{Operand::immediate, 0, false, false, field(w, 24, 20)});
            break;
        case 'E':
            visit(Operand{Operand::immediate, 0, false, false, field(w, 31, 20)});
            break;
        case 'p':
            visit(Operand{Operand::target, 0, false, false, branch_offset(w)});
            break;
        case 'a':
            visit(Operand{Operand::target, 0, false, false, jump_offset(w)});
            break;
        case 'Z':
            visit(Operand{Operand::second, 's', false, false, field(w, 19, 15)});
            break;
        case 'L':
            visit(Operand{Operand::second, 'd', false, false, field(w, 7, 7)});
            break;
        case 'm':
            visit(Operand{Operand::rounding, 0, false, false, field(w, 14, 12)});
            break;
        case 'b':
            switch (*++c) {
            case '5':
                visit(Operand{Operand::immediate, 0, false, false, field(w, 29, 25)});
                break;
            case 'i':
                visit(Operand{two_small ? Operand::second : Operand::immediate, 't', false, false, field(w, 24, 20)});
                break;
            case 's':
                visit(Operand{Operand::immediate, 0, false, false,
                              extended(field(w, 24, 20) << 1 | field(w, 25, 25), 6)});
                break;
            case 'u':
                visit(Operand{Operand::immediate, 0, false, false, field(w, 24, 20) << 1 | field(w, 25, 25)});
                break;
            case 'I':
                visit(Operand{Operand::second, 't', false, false, extended(field(w, 24, 20), 5)});
                break;
            case 'g':
                visit(Operand{Operand::second, 't', false, false, field(w, 14, 8)});
                break;
            case '1':
                visit(Operand{Operand::target, 0, false, false, field(w, 31, 20) << 1});
                break;
            case '2':
                visit(Operand{Operand::second_target, 't', false, false, field(w, 19, 15) << 1});
                break;
            default:
                break;
            }
            break;
        case '+':
            break;
        default:
            visit(Operand{Operand::literal, 0, false, false, *c});
            break;
        }
    }
}

std::string hexadecimal(uint32_t number) {
    char buffer[16];
    snprintf(buffer, sizeof buffer, "0x%x", number);
    return buffer;
}

} // namespace

const Row &row_of(uint16_t code) { return rows[code]; }

uint64_t registers_read(uint16_t code, uint32_t word) {
    uint64_t read = 0;
    for_each_operand(rows[code].operands, word, [&](const Operand &o) {
        if (o.reads)
            read |= uint64_t{1} << (o.number + (o.kind == Operand::floating ? 32 : 0));
    });
    return read & ~uint64_t{1};
}

Decoder::Decoder(const std::vector<std::string> &extensions, const PipelineTiming &timing) : timing_(timing) {
    for (const std::string &wanted : extensions) {
        if (wanted == "rv32c") {
            compressed_ = true;
            continue;
        }
        int first = op_loop_back + 1;
        bool found = false;
        for (const Table &table : tables) {
            if (includes(wanted, table.name)) {
                found = true;
                for (int code = first; code < first + table.rows; ++code)
                    rows_by_opcode_[field(rows[code].match, 6, 2)].push_back(static_cast<uint16_t>(code));
            }
            first += table.rows;
        }
        if (!found)
            throw std::invalid_argument("there is no instruction table '" + wanted + "'");
    }
}

uint32_t Decoder::expanded(uint32_t word) const {
    if (length(word) == 4)
        return word;
    return compressed_ ? expand_compressed(word & 0xffff) : 0;
}

uint16_t Decoder::find(uint32_t word) const {
    if ((word & 3) != 3)
        return op_illegal;
    for (const uint16_t code : rows_by_opcode_[field(word, 6, 2)])
        if ((word & rows[code].mask) == rows[code].match)
            return code;
    return op_illegal;
}

uint32_t Decoder::stall_behind(const Op &op, uint32_t following) const {
    if (timing_.scoreboard)
        return 0; // found while running, for all instructions behind
    const Row &row = rows[op.code];
    const bool integer = row.operands[0] == 'd', floating = row.operands[0] == 'D';
    if ((!integer && !floating) || (integer && op.rd == nowhere))
        return 0;
    const uint32_t word = expanded(following);
    const uint16_t code = find(word);
    const int written = op.rd + (floating ? 32 : 0);
    if (row.timing == Timing::fp_load && rows[code].timing == Timing::fp_load && field(word, 11, 7) == op.rd)
        return timing_.fp_load_again;
    if (((registers_read(code, word) >> written) & 1) == 0)
        return 0;
    uint32_t stall = timing_.use[static_cast<size_t>(row.timing)];
    if (rows[code].timing == Timing::jump_register)
        stall += timing_.jump_register_written;
    return stall;
}

Op Decoder::decode(uint32_t word, uint32_t following) const {
    Op op{};
    op.next = length(word) / 2;
    const uint32_t whole = expanded(word);
    op.code = find(whole);
    const Row &row = rows[op.code];
    op.rd = nowhere;
    for_each_operand(row.operands, whole, [&](const Operand &o) {
        if (o.kind == Operand::immediate || o.kind == Operand::upper || o.kind == Operand::target ||
            o.kind == Operand::rounding)
            op.imm = static_cast<int32_t>(o.number);
        else if (o.letter == 'd')
            op.rd = static_cast<uint8_t>(o.number == 0 && o.kind == Operand::integer && o.writes ? nowhere : o.number);
        else if (o.letter == 's')
            op.rs1 = static_cast<uint8_t>(o.number);
        else if (o.letter == 't')
            op.rs2 = static_cast<uint8_t>(o.number);
        else if (o.letter == 'r')
            op.rs3 = static_cast<uint8_t>(o.number);
    });
    op.stall = static_cast<uint8_t>(stall_behind(op, following));
    op.cycles = static_cast<uint8_t>(timing_.cycles[static_cast<size_t>(row.timing)] + op.stall);
    return op;
}

std::string Decoder::disassemble(uint32_t word, uint32_t pc) const {
    const uint32_t whole = expanded(word);
    const uint16_t code = find(whole);
    if (code == op_illegal)
        return "illegal";
    std::string text = rows[code].name;
    char separator = ' ';
    const auto put = [&](const std::string &part) {
        if (separator)
            text += separator;
        separator = 0;
        text += part;
    };
    for_each_operand(rows[code].operands, whole, [&](const Operand &o) {
        switch (o.kind) {
        case Operand::literal:
            put(std::string(1, static_cast<char>(o.number)));
            break;
        case Operand::integer:
            put(integer_names[o.number]);
            break;
        case Operand::floating:
            put(float_names[o.number]);
            break;
        case Operand::rounding:
            put(rounding_names[o.number]);
            break;
        case Operand::upper:
            put(hexadecimal(static_cast<uint32_t>(o.number) >> 12));
            break;
        case Operand::target:
        case Operand::second_target:
            put(hexadecimal(pc + static_cast<uint32_t>(o.number)));
            break;
        default:
            put(std::to_string(o.number));
            break;
        }
    });
    return text;
}

} // namespace tilewright
