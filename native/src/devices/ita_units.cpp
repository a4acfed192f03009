#include "devices/ita_units.h"

#include "devices/ita.h"
#include "machine/machine.h"

#include <algorithm>
#include <cstring>

namespace tilewright {

namespace {

enum : uint32_t { reg_state, reg_block, reg_output, reg_scales, reg_rows, reg_embedding, reg_projection };
constexpr uint32_t unit_bytes = 0x30;
constexpr uint32_t bit_start = 1, bit_busy = 2, bit_done = 4, bit_skip = 16, bits_iterations = 7u << 5;
constexpr uint32_t strip = 16; // columns

uint32_t word_at(const uint8_t *bytes) {
    uint32_t word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
}

// A matrix of bytes by rows, or in strips of columns.
struct Matrix {
    const uint8_t *bytes;
    uint32_t rows;
    uint32_t columns;
    bool strips;
    int32_t at(uint32_t row, uint32_t column) const {
        const uint32_t place = strips ? (column / strip * rows + row) * strip + column % strip : row * columns + column;
        return static_cast<int8_t>(bytes[place]);
    }
};

using Values = std::vector<int32_t>;

Values values_of(const Matrix &matrix) {
    Values values;
    values.reserve(size_t{matrix.rows} * matrix.columns);
    for (uint32_t row = 0; row < matrix.rows; ++row)
        for (uint32_t column = 0; column < matrix.columns; ++column)
            values.push_back(matrix.at(row, column));
    return values;
}

class Computation {
  public:
    Computation(const ItaHead &head, std::span<const uint8_t> block, std::span<const uint8_t> inputs)
        : head_(head), block_(block.data()), inputs_(inputs.data()) {}

    std::vector<int8_t> run() const {
        const uint32_t s = head_.rows, e = head_.embedding, p = head_.projection;
        const uint8_t *query = inputs_ + head_.query_at(), *biases = block_ + head_.query_at() + 2 * s * e + e * p;
        const Values q = values_of({query, s, e, true}), k = values_of({query + s * e, s, e, true});
        const Values output_weights = values_of({block_, e, p, false});
        const Values value_weights = values_of({block_ + e * p, p, e, false});
        const Values key_weights = values_of({block_ + 2 * e * p, p, e, false});
        const Values query_weights = values_of({block_ + head_.query_at() + 2 * s * e, p, e, true});
        const Values queries = product(q, query_weights, s, p, e, biases + 4 * (e + 2 * p), 0);
        const Values keys = product(k, key_weights, s, p, e, biases + 4 * (e + p), 1);
        Values scores = product(queries, keys, s, s, p, nullptr, 2);
        const Values values = turned(product(k, value_weights, s, p, e, biases + 4 * e, 3), s, p);
        for (uint32_t row = 0; row < s; ++row)
            soften(scores.data() + row * s, s);
        const Values mixed = product(scores, values, s, p, s, nullptr, 4);
        const Values result = product(mixed, output_weights, s, e, p, biases, 5);
        return {result.begin(), result.end()};
    }

  private:
    // Rows of the left times rows of the right, scaled back to 8 bits; all of it in 32 bits that wrap.
    Values product(const Values &left, const Values &right, uint32_t rows, uint32_t columns, uint32_t inner,
                   const uint8_t *bias, uint32_t scale) const {
        Values result(size_t{rows} * columns);
        for (uint32_t row = 0; row < rows; ++row)
            for (uint32_t column = 0; column < columns; ++column) {
                uint32_t sum = bias == nullptr ? 0 : word_at(bias + 4 * column);
                for (uint32_t i = 0; i < inner; ++i)
                    sum += static_cast<uint32_t>(left[row * inner + i] * right[column * inner + i]);
                const auto scaled = static_cast<int32_t>(sum * head_.mult[scale]);
                result[row * columns + column] = ita_requantise(scaled, {1, head_.shift[scale], head_.add[scale]});
            }
        return result;
    }

    static Values turned(const Values &values, uint32_t rows, uint32_t columns) {
        Values result(values.size());
        for (uint32_t row = 0; row < rows; ++row)
            for (uint32_t column = 0; column < columns; ++column)
                result[column * rows + row] = values[row * columns + column];
        return result;
    }

    // An earlier softmax than that of ItaRow: 32 steps of the scores are a factor of two.
    static int32_t halvings(int32_t distance) { return std::min((distance + 16) >> 5, 31); }
    static void soften(int32_t *scores, uint32_t count) {
        int32_t top = -128;
        uint32_t sum = 0;
        for (uint32_t first = 0; first < count; first += ita_group) {
            const uint32_t end = std::min(first + ita_group, count);
            const int32_t highest = std::max(top, *std::max_element(scores + first, scores + end));
            if (highest > top)
                sum >>= halvings(highest - top);
            top = highest;
            for (uint32_t i = first; i < end; ++i)
                sum += 1024u >> halvings(top - scores[i]);
        }
        const uint32_t factor = 130048u / std::max(sum, 1u);
        for (uint32_t i = 0; i < count; ++i)
            scores[i] = static_cast<int32_t>(std::min(factor >> halvings(top - scores[i]), 127u));
    }

    const ItaHead &head_;
    const uint8_t *block_;
    const uint8_t *inputs_;
};

int64_t tiles(uint32_t size) { return (size + ita_tile - 1) / ita_tile; }

} // namespace

uint32_t ItaHead::block_bytes() const {
    return 4 * embedding * projection + 2 * rows * embedding + 4 * (embedding + 3 * projection);
}

int64_t ItaHead::products() const {
    const int64_t s = tiles(rows), e = tiles(embedding), p = tiles(projection);
    return 4 * s * p * e + 2 * s * s * p;
}

std::vector<int8_t> compute_ita_head(const ItaHead &head, std::span<const uint8_t> block,
                                     std::span<const uint8_t> inputs) {
    return Computation(head, block, inputs).run();
}

ItaUnits::ItaUnits(Machine &machine, const std::string &name, const Settings &settings)
    : Device(machine, name), units_(settings.word("units")), product_cycles_(settings["product_cycles"]),
      drain_cycles_(settings["drain_cycles"]) {
    for (Unit &unit : units_)
        unit.thread =
            machine.checks().add_thread(name, "a look at the state register of a unit of '" + name + "'", true);
}

Reply ItaUnits::access(const Access &access) {
    const uint32_t index = access.offset / unit_bytes, number = access.offset % unit_bytes / 4;
    if (index >= units_.size() || number >= units_[index].registers.size())
        return {.refused = true};
    Unit &unit = units_[index];
    if (!access.write) {
        if (number != reg_state)
            return {.value = unit.registers[number]};
        if (unit.done && unit.transfer != no_transfer)
            machine_.checks().ended(access.hart, unit.transfer);
        return {.value = unit.registers[reg_state] | (unit.busy ? bit_busy : 0) | (unit.done ? bit_done : 0)};
    }
    if (unit.busy) {
        machine_.stop_with(Fault{"bad-job", "'" + name() + "': a register of a unit is written while it is busy",
                                 access.hart.index, access.pc, access.address, access.time});
        return {};
    }
    unit.registers[number] = number == reg_state ? access.value & ~(bit_start | bit_busy | bit_done) : access.value;
    if (number == reg_state && access.value & bit_start)
        start(unit, access);
    return {};
}

void ItaUnits::start(Unit &unit, const Access &access) {
    const auto fail = [&](const std::string &why, uint32_t address) {
        machine_.stop_with(
            Fault{"bad-job", "'" + name() + "': " + why, access.hart.index, access.pc, address, access.time});
    };
    if (access.value & (bit_skip | bits_iterations))
        return fail("heads without softmax, and several of them in one go, are not simulated", access.address);
    for (const uint32_t number : {reg_block, reg_output, reg_scales})
        if (unit.registers[number] % 4 != 0)
            return fail("an address is no multiple of 4", unit.registers[number]);
    if (!read_head(unit))
        return fail("its scales lie in no memory", unit.registers[reg_scales]);
    const ItaHead &head = unit.head;
    if (head.rows % strip != 0 || head.embedding % strip != 0 || head.projection % strip != 0 || head.rows == 0 ||
        head.embedding == 0 || head.projection == 0 || std::max({head.rows, head.embedding, head.projection}) > 512)
        return fail("sizes must be multiples of 16, and 512 at most", access.address);
    const uint32_t block = unit.registers[reg_block], shared = units_[0].registers[reg_block];
    const uint32_t output = unit.registers[reg_output], results = head.rows * head.embedding;
    for (const auto &[address, size] :
         {std::pair(block, head.block_bytes()), std::pair(shared, head.block_bytes()), std::pair(output, results)})
        if (machine_.bytes(address, size).size() != size)
            return fail("its block or output lies in no memory", address);
    const int64_t cycles = product_cycles_ * head.products() + drain_cycles_;
    unit.busy = true;
    unit.done = false;
    busy_ += static_cast<uint64_t>(cycles);
    describe(unit, access);
    machine_.schedule(access.time + cycles, *this, static_cast<uint32_t>(&unit - units_.data()));
}

bool ItaUnits::read_head(Unit &unit) {
    ItaHead head{unit.registers[reg_rows], unit.registers[reg_embedding], unit.registers[reg_projection], {}, {}, {}};
    const auto pointers = machine_.bytes(unit.registers[reg_scales], 12);
    if (pointers.size() != 12)
        return false;
    const auto mult = machine_.bytes(word_at(pointers.data()), 6), shift = machine_.bytes(word_at(&pointers[4]), 6);
    const auto add = machine_.bytes(word_at(&pointers[8]), 24);
    if (mult.size() != 6 || shift.size() != 6 || add.size() != 24)
        return false;
    for (uint32_t i = 0; i < 6; ++i) {
        head.mult[i] = mult[i];
        head.shift[i] = shift[i];
        head.add[i] = static_cast<int32_t>(word_at(&add[4 * i]));
    }
    unit.head = head;
    return true;
}

void ItaUnits::describe(Unit &unit, const Access &access) {
    unit.transfer = no_transfer;
    if (!machine_.wants_transfers())
        return;
    const ItaHead &head = unit.head;
    const uint32_t block = unit.registers[reg_block], output = unit.registers[reg_output];
    const uint32_t query = head.query_at(), size = 2 * head.rows * head.embedding;
    const uint32_t inputs = units_[0].registers[reg_block] + query;
    Transfer transfer{
        .what = "a head of attention on ITA",
        .lane = name(),
        .thread = unit.thread,
        .hart = access.hart.index,
        .pc = access.pc,
        .started = access.time,
        .bytes = head.block_bytes() + head.rows * head.embedding,
        .reads = {{block, block + query}, {inputs, inputs + size}, {block + query + size, block + head.block_bytes()}},
        .writes = {{output, output + head.rows * head.embedding}},
        .copies = false};
    unit.transfer = machine_.transfer_started(std::move(transfer));
}

void ItaUnits::happen(uint32_t tag) {
    Unit &unit = units_[tag];
    const uint32_t size = unit.head.block_bytes(), results = unit.head.rows * unit.head.embedding;
    const std::vector<int8_t> made = compute_ita_head(unit.head, machine_.bytes(unit.registers[reg_block], size),
                                                      machine_.bytes(units_[0].registers[reg_block], size));
    std::memcpy(machine_.bytes(unit.registers[reg_output], results).data(), made.data(), results);
    unit.busy = false;
    unit.done = true;
    ++heads_;
    if (unit.transfer != no_transfer)
        machine_.transfer_done(unit.transfer, machine_.now());
}

std::map<std::string, uint64_t> ItaUnits::statistics() const { return {{"heads", heads_}, {"busy", busy_}}; }

} // namespace tilewright
