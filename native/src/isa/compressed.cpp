// RV32C with RV32FC, each as the 32-bit instruction it stands for.
#include "isa/decode.h"

namespace tilewright {

namespace {

constexpr uint32_t x0 = 0, ra = 1, sp = 2;

// Operands of compressed instructions.

constexpr uint32_t bits(uint32_t word, int high, int low) { return (word >> low) & ((2u << (high - low)) - 1); }

constexpr uint32_t rd(uint32_t w) { return bits(w, 11, 7); }
constexpr uint32_t rs2(uint32_t w) { return bits(w, 6, 2); }
// Three bits name one of x8 to x15.
constexpr uint32_t small_low(uint32_t w) { return 8 + bits(w, 4, 2); }
constexpr uint32_t small_high(uint32_t w) { return 8 + bits(w, 9, 7); }

// Immediates; signed ones come extended to 32 bits.
constexpr uint32_t minus_from(uint32_t w, int bit) { return bits(w, 12, 12) == 0 ? 0 : ~0u << bit; }
constexpr uint32_t immediate(uint32_t w) { return minus_from(w, 5) | bits(w, 6, 2); }
constexpr uint32_t upper_immediate(uint32_t w) { return immediate(w) << 12; }
constexpr uint32_t stack_adjustment(uint32_t w) {
    return minus_from(w, 9) | bits(w, 4, 3) << 7 | bits(w, 5, 5) << 6 | bits(w, 2, 2) << 5 | bits(w, 6, 6) << 4;
}
constexpr uint32_t stack_distance(uint32_t w) {
    return bits(w, 10, 7) << 6 | bits(w, 12, 11) << 4 | bits(w, 5, 5) << 3 | bits(w, 6, 6) << 2;
}
constexpr uint32_t word_offset(uint32_t w) { return bits(w, 5, 5) << 6 | bits(w, 12, 10) << 3 | bits(w, 6, 6) << 2; }
constexpr uint32_t stack_load_offset(uint32_t w) {
    return bits(w, 3, 2) << 6 | bits(w, 12, 12) << 5 | bits(w, 6, 4) << 2;
}
constexpr uint32_t stack_store_offset(uint32_t w) { return bits(w, 8, 7) << 6 | bits(w, 12, 9) << 2; }
constexpr uint32_t branch_distance(uint32_t w) {
    return minus_from(w, 8) | bits(w, 6, 5) << 6 | bits(w, 2, 2) << 5 | bits(w, 11, 10) << 3 | bits(w, 4, 3) << 1;
}
constexpr uint32_t jump_distance(uint32_t w) {
    return minus_from(w, 11) | bits(w, 8, 8) << 10 | bits(w, 10, 9) << 8 | bits(w, 6, 6) << 7 | bits(w, 7, 7) << 6 |
           bits(w, 2, 2) << 5 | bits(w, 11, 11) << 4 | bits(w, 5, 3) << 1;
}

// 32-bit instructions; `base` is the encoding without operands.

constexpr uint32_t registers(uint32_t base, uint32_t d, uint32_t s, uint32_t t) {
    return base | t << 20 | s << 15 | d << 7;
}
constexpr uint32_t with_immediate(uint32_t base, uint32_t d, uint32_t s, uint32_t value) {
    return base | value << 20 | s << 15 | d << 7;
}
constexpr uint32_t store(uint32_t base, uint32_t t, uint32_t s, uint32_t offset) {
    return base | bits(offset, 11, 5) << 25 | t << 20 | s << 15 | bits(offset, 4, 0) << 7;
}
constexpr uint32_t branch(uint32_t base, uint32_t s, uint32_t distance) {
    return base | bits(distance, 12, 12) << 31 | bits(distance, 10, 5) << 25 | s << 15 | bits(distance, 4, 1) << 8 |
           bits(distance, 11, 11) << 7;
}
constexpr uint32_t jump(uint32_t d, uint32_t distance) {
    return 0x6f | bits(distance, 20, 20) << 31 | bits(distance, 10, 1) << 21 | bits(distance, 11, 11) << 20 |
           bits(distance, 19, 12) << 12 | d << 7;
}

constexpr uint32_t lw = 0x2003, flw = 0x2007, sw = 0x2023, fsw = 0x2027, addi = 0x13, lui = 0x37, jalr = 0x67;
constexpr uint32_t slli = 0x1013, srli = 0x5013, srai = 0x40005013, andi = 0x7013, beq = 0x63, bne = 0x1063;
constexpr uint32_t add = 0x33, sub = 0x40000033, xor_ = 0x4033, or_ = 0x6033, and_ = 0x7033, ebreak = 0x00100073;

// 0 where an operand makes the encoding a reserved one.
constexpr uint32_t unless_zero(uint32_t operand, uint32_t encoding) { return operand == 0 ? 0 : encoding; }

constexpr CompressedRow rows[] = {
    {"c.addi4spn", 0x0000, 0xe003,
     [](uint32_t w) {
         return unless_zero(stack_distance(w), with_immediate(addi, small_low(w), sp, stack_distance(w)));
     }},
    {"c.lw", 0x4000, 0xe003,
     [](uint32_t w) { return with_immediate(lw, small_low(w), small_high(w), word_offset(w)); }},
    {"c.flw", 0x6000, 0xe003,
     [](uint32_t w) { return with_immediate(flw, small_low(w), small_high(w), word_offset(w)); }},
    {"c.sw", 0xc000, 0xe003, [](uint32_t w) { return store(sw, small_low(w), small_high(w), word_offset(w)); }},
    {"c.fsw", 0xe000, 0xe003, [](uint32_t w) { return store(fsw, small_low(w), small_high(w), word_offset(w)); }},
    {"c.addi", 0x0001, 0xe003, [](uint32_t w) { return with_immediate(addi, rd(w), rd(w), immediate(w)); }},
    {"c.jal", 0x2001, 0xe003, [](uint32_t w) { return jump(ra, jump_distance(w)); }},
    {"c.li", 0x4001, 0xe003, [](uint32_t w) { return with_immediate(addi, rd(w), x0, immediate(w)); }},
    {"c.addi16sp", 0x6101, 0xef83,
     [](uint32_t w) { return unless_zero(stack_adjustment(w), with_immediate(addi, sp, sp, stack_adjustment(w))); }},
    {"c.lui", 0x6001, 0xe003,
     [](uint32_t w) { return unless_zero(immediate(w), lui | upper_immediate(w) | rd(w) << 7); }},
    // Shifts by 32 and more belong to 64-bit harts; bit 12 stays 0.
    {"c.srli", 0x8001, 0xfc03, [](uint32_t w) { return with_immediate(srli, small_high(w), small_high(w), rs2(w)); }},
    {"c.srai", 0x8401, 0xfc03, [](uint32_t w) { return with_immediate(srai, small_high(w), small_high(w), rs2(w)); }},
    {"c.andi", 0x8801, 0xec03,
     [](uint32_t w) { return with_immediate(andi, small_high(w), small_high(w), immediate(w)); }},
    {"c.sub", 0x8c01, 0xfc63, [](uint32_t w) { return registers(sub, small_high(w), small_high(w), small_low(w)); }},
    {"c.xor", 0x8c21, 0xfc63, [](uint32_t w) { return registers(xor_, small_high(w), small_high(w), small_low(w)); }},
    {"c.or", 0x8c41, 0xfc63, [](uint32_t w) { return registers(or_, small_high(w), small_high(w), small_low(w)); }},
    {"c.and", 0x8c61, 0xfc63, [](uint32_t w) { return registers(and_, small_high(w), small_high(w), small_low(w)); }},
    {"c.j", 0xa001, 0xe003, [](uint32_t w) { return jump(x0, jump_distance(w)); }},
    {"c.beqz", 0xc001, 0xe003, [](uint32_t w) { return branch(beq, small_high(w), branch_distance(w)); }},
    {"c.bnez", 0xe001, 0xe003, [](uint32_t w) { return branch(bne, small_high(w), branch_distance(w)); }},
    {"c.slli", 0x0002, 0xf003, [](uint32_t w) { return with_immediate(slli, rd(w), rd(w), rs2(w)); }},
    {"c.lwsp", 0x4002, 0xe003,
     [](uint32_t w) { return unless_zero(rd(w), with_immediate(lw, rd(w), sp, stack_load_offset(w))); }},
    {"c.flwsp", 0x6002, 0xe003, [](uint32_t w) { return with_immediate(flw, rd(w), sp, stack_load_offset(w)); }},
    {"c.jr", 0x8002, 0xf07f, [](uint32_t w) { return unless_zero(rd(w), with_immediate(jalr, x0, rd(w), 0)); }},
    {"c.mv", 0x8002, 0xf003, [](uint32_t w) { return registers(add, rd(w), x0, rs2(w)); }},
    {"c.ebreak", 0x9002, 0xffff, [](uint32_t) { return ebreak; }},
    {"c.jalr", 0x9002, 0xf07f, [](uint32_t w) { return with_immediate(jalr, ra, rd(w), 0); }},
    {"c.add", 0x9002, 0xf003, [](uint32_t w) { return registers(add, rd(w), rd(w), rs2(w)); }},
    {"c.swsp", 0xc002, 0xe003, [](uint32_t w) { return store(sw, rs2(w), sp, stack_store_offset(w)); }},
    {"c.fswsp", 0xe002, 0xe003, [](uint32_t w) { return store(fsw, rs2(w), sp, stack_store_offset(w)); }},
};

} // namespace

std::span<const CompressedRow> compressed_rows() { return rows; }

uint32_t expand_compressed(uint32_t word) {
    for (const CompressedRow &row : rows)
        if ((word & row.mask) == row.match)
            return row.expand(word);
    return 0;
}

} // namespace tilewright
