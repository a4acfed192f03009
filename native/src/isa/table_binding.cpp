// The instruction tables for Python, where the tests make encodings from them.
#include "isa/table_binding.h"

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "isa/decode.h"

namespace tilewright {

namespace {

namespace nb = nanobind;

struct Described {
    const char *id;
    Row row;
    const char *timing;
    const char *extension;
};

constexpr Described described[] = {
#define INSN(id, name, match, mask, operands, timing, ...)                                                             \
    {#id, {name, match, mask, operands, Timing::timing}, #timing, EXTENSION},
#define FLOAT INSN
#define EXTENSION "rv32i"
#include "isa/rv32i.inc"
#undef EXTENSION
#define EXTENSION "rv32m"
#include "isa/rv32m.inc"
#undef EXTENSION
#define EXTENSION "zicsr"
#include "isa/zicsr.inc"
#undef EXTENSION
#define EXTENSION "rv32a"
#include "isa/rv32a.inc"
#undef EXTENSION
#define EXTENSION "rv32f"
#include "isa/rv32f.inc"
#undef EXTENSION
#define EXTENSION "zfinx"
#include "isa/zfinx.inc"
#undef EXTENSION
#define EXTENSION "xpulpv2"
#include "isa/xpulpimg.inc"
#include "isa/xpulpv2.inc"
#undef EXTENSION
#define EXTENSION "xfloat"
#include "isa/xfloat.inc"
#undef EXTENSION
#define EXTENSION "xdma"
#include "isa/xdma.inc"
#undef EXTENSION
#define EXTENSION "xssr"
#include "isa/xssr.inc"
#undef EXTENSION
#define EXTENSION "xfrep"
#include "isa/xfrep.inc"
#undef EXTENSION
#undef FLOAT
#undef INSN
};

using Listed = std::tuple<std::string, std::string, uint32_t, uint32_t, std::string, std::string, std::string>;

std::vector<Listed> instruction_table() {
    std::vector<Listed> table;
    for (const auto &[id, row, timing, extension] : described)
        table.emplace_back(id, row.name, row.match, row.mask, row.operands, timing, extension);
    return table;
}

std::vector<std::tuple<std::string, uint32_t, uint32_t>> compressed_table() {
    std::vector<std::tuple<std::string, uint32_t, uint32_t>> table;
    for (const CompressedRow &row : compressed_rows())
        table.emplace_back(row.name, row.match, row.mask);
    return table;
}

} // namespace

void bind_table(nb::module_ &module) {
    module.def("instruction_table", &instruction_table,
               "All 32-bit instructions: id, name, match, mask, operands, timing, extension.");
    module.def("compressed_table", &compressed_table, "All compressed instructions: name, match, mask.");
    module.def("expand_compressed", &expand_compressed, nb::arg("word"),
               "The 32-bit instruction that a compressed one stands for; 0 where there is none.");
}

} // namespace tilewright
