// From encodings to decoded instructions and to text, by the rows of the instruction tables.
#pragma once

#include "isa/op.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tilewright {

constexpr int rounding_dynamic = 7;
// Where writes of x0 go.
constexpr uint8_t nowhere = 32;
constexpr uint32_t stack_pointer = 2;

// Cycles of the pipeline, by what it does with an instruction.
struct PipelineTiming {
    std::array<uint8_t, static_cast<size_t>(Timing::count)> cycles{};
    // Stall of an instruction that reads the result of the one right before it; with a scoreboard, the cycles beyond its
    // own after which any instruction may read it.
    std::array<uint8_t, static_cast<size_t>(Timing::count)> use{};
    // Added to a jump through a register that the instruction right before it wrote.
    uint8_t jump_register_written = 0;
    uint8_t taken_branch = 0;
    // Stall of a floating-point load right behind one into the same register.
    uint8_t fp_load_again = 0;
    // Instructions wait for registers, not for the instruction before them: long results come while others go on.
    bool scoreboard = false;
};

// The names a description gives to the pipeline's cycles.
extern const std::array<const char *, static_cast<size_t>(Timing::count)> timing_names;

class Decoder {
  public:
    // `extensions` are names of tables ("rv32i", "xpulpv2"); an unknown one throws std::invalid_argument.
    Decoder(const std::vector<std::string> &extensions, const PipelineTiming &timing);

    // The instruction at `pc`, whose encoding starts with the low bits of `word`; `following` are the bytes behind it.
    Op decode(uint32_t word, uint32_t following) const;
    std::string disassemble(uint32_t word, uint32_t pc) const;

    static int length(uint32_t word) { return (word & 3) == 3 ? 4 : 2; }

  private:
    uint16_t find(uint32_t word) const;
    // The 32-bit instruction that a word stands for; 0 for a compressed one that does not exist.
    uint32_t expanded(uint32_t word) const;
    // Cycles that the instruction behind one waits for the register it writes.
    uint32_t stall_behind(const Op &op, uint32_t following) const;

    PipelineTiming timing_;
    bool compressed_ = false;
    std::array<std::vector<uint16_t>, 32> rows_by_opcode_; // by bits 6:2
};

const Row &row_of(uint16_t code);
// Registers that an instruction reads, as bits (32 integer, then 32 floating-point).
constexpr unsigned no_register = 64;
uint64_t registers_read(uint16_t code, uint32_t word);

// A compressed instruction; the more special of two encodings that overlap comes first.
struct CompressedRow {
    const char *name;
    uint32_t match;
    uint32_t mask;
    uint32_t (*expand)(uint32_t word); // to the 32-bit instruction it stands for; 0 for a reserved encoding
};
std::span<const CompressedRow> compressed_rows();
// What a compressed instruction stands for; 0 where there is none with this encoding.
uint32_t expand_compressed(uint32_t word);

} // namespace tilewright
