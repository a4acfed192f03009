// Decoding ITA's jobs, their order in a layer, the checks before they run, and their cycles.
#include "devices/ita.h"

#include <algorithm>

namespace tilewright {

namespace {

constexpr uint32_t bits(uint32_t value, uint32_t low, uint32_t count) { return value >> low & ((1u << count) - 1); }
constexpr bool bit(uint32_t value, uint32_t index) { return bits(value, index, 1) != 0; }
constexpr int32_t extended(uint32_t value, uint32_t low, uint32_t count) {
    return static_cast<int32_t>(value << (32 - low - count)) >> (32 - count);
}

enum Extent : uint8_t { S, E, P, F };

// A step computes rows x columns tiles of results, of inner products each.
struct Step {
    ItaStep step;
    Extent rows;
    Extent columns;
    Extent inner;
};
constexpr std::array attention = {Step{ItaStep::query, S, P, E}, Step{ItaStep::key, S, P, E},
                                  Step{ItaStep::value, P, S, E}, Step{ItaStep::scores, S, S, P},
                                  Step{ItaStep::mix, S, P, S},   Step{ItaStep::output, S, E, P}};
constexpr std::array feed_forward = {Step{ItaStep::first, S, F, E}, Step{ItaStep::second, S, E, F}};
constexpr std::array linear = {Step{ItaStep::product, S, P, E}};
constexpr std::array single_attention = {attention[3], attention[4]};

std::span<const Step> steps_of(ItaLayer layer) {
    switch (layer) {
    case ItaLayer::attention:
        return attention;
    case ItaLayer::feed_forward:
        return feed_forward;
    case ItaLayer::linear:
        return linear;
    default:
        return single_attention;
    }
}

// Scores of a row of tiles and the mix of values by them take turns.
constexpr bool by_rows(ItaStep step) { return step == ItaStep::scores || step == ItaStep::mix; }

bool same_layer(const ItaJob &left, const ItaJob &right) {
    return left.layer == right.layer && left.tiles == right.tiles;
}

constexpr uint32_t access_bytes = 128;
constexpr int64_t product_cycles = ita_tile * ita_tile / ita_group; // a row and a group of columns in each

} // namespace

std::string_view name_of(ItaStep step) {
    constexpr std::array<std::string_view, 9> names = {"Q", "K", "V", "QK", "AV", "OW", "F1", "F2", "MatMul"};
    return names[static_cast<size_t>(step)];
}

ItaJob decode_ita_job(const ItaRegisters &registers) {
    ItaJob job{};
    job.input = registers[0];
    job.weights = registers[1];
    job.next_weights = registers[2];
    job.bias = registers[3];
    job.output = registers[4];
    for (uint32_t i = 0; i < job.tiles.size(); ++i)
        job.tiles[i] = std::max(bits(registers[6], 4 * i, 4), 1u);
    for (uint32_t i = 0; i < job.scales.size(); ++i)
        job.scales[i] = {bits(registers[7 + i / 4], i % 4 * 8, 8), bits(registers[9 + i / 4], i % 4 * 8, 8),
                         extended(registers[11 + i / 4], i % 4 * 8, 8)};
    job.layer = static_cast<ItaLayer>(bits(registers[13], 0, 2));
    job.function.kind = static_cast<ItaActivation>(bits(registers[13], 2, 2));
    job.loads_first = bit(registers[14], 0);
    job.loads_next = bit(registers[14], 1);
    job.without_bias = bit(registers[14], 2);
    job.bias_along_rows = bit(registers[14], 3);
    job.without_output = bit(registers[14], 4);
    job.function.b = extended(registers[15], 0, 16);
    job.function.c = extended(registers[15], 16, 16);
    job.function.scale = {bits(registers[16], 0, 8), bits(registers[16], 8, 8), extended(registers[16], 16, 8)};
    return job;
}

ItaEngine::Place ItaEngine::place_of(const ItaJob &job, const ItaPosition &position) {
    const Step &step = steps_of(job.layer)[position.step];
    return {step.step, position.inner == 0, position.inner + 1 == job.tiles[step.inner], position.tile == 0};
}

void ItaEngine::advance(const ItaJob &job, ItaPosition &position) {
    const auto steps = steps_of(job.layer);
    const Step &step = steps[position.step];
    if (++position.inner < job.tiles[step.inner])
        return;
    position.inner = 0;
    const uint32_t rows = by_rows(step.step) ? 1 : job.tiles[step.rows];
    if (++position.tile < rows * job.tiles[step.columns])
        return;
    position.tile = 0;
    if (step.step == ItaStep::mix && ++position.row < job.tiles[step.rows]) {
        --position.step;
        return;
    }
    if (step.step == ItaStep::mix)
        position.row = 0;
    position.step = position.step + 1 < steps.size() ? position.step + 1 : 0;
}

std::vector<ItaRange> ita_ranges(const ItaJob &job) {
    const uint32_t skipped = job.loads_first ? 0 : ita_group_bytes;
    std::vector<ItaRange> ranges = {{job.input, job.input + ita_tile_bytes, false, "input"},
                                    {job.weights + skipped, job.weights + ita_tile_bytes, false, "weights"}};
    if (job.loads_next)
        ranges.push_back({job.next_weights, job.next_weights + ita_group_bytes, false, "next weights"});
    if (!job.without_bias)
        ranges.push_back({job.bias, job.bias + ita_bias_bytes, false, "bias"});
    if (!job.without_output)
        ranges.push_back({job.output, job.output + ita_tile_bytes, true, "output"});
    return ranges;
}

std::optional<ItaFault> ItaEngine::check(const ItaJob &job) const {
    for (const ItaRange &range : ita_ranges(job)) {
        const std::string use(range.use);
        if (range.begin % 8 != 0)
            return ItaFault{"the address of its " + use + " is no multiple of 8", range.begin};
        if (range.end < range.begin || range.end > memory_.size())
            return ItaFault{"its " + use + " lies outside of the memory, of which addresses are offsets", range.begin};
    }
    for (const uint32_t tiles : job.tiles)
        if (tiles > ita_tile_limit)
            return ItaFault{"a side has more than " + std::to_string(ita_tile_limit) +
                            " tiles, for which sums have too few bits"};
    if (job.function.kind == ItaActivation::reserved)
        return ItaFault{"there is no activation 3"};
    if (layer_ && !same_layer(*layer_, job))
        return ItaFault{"its layer or tile counts differ from those of the layer that is not complete yet"};
    const Place place = place_of(job, accepted_);
    if (place.last_inner == job.without_output)
        return ItaFault{job.without_output ? "it gives the last product of a tile, but no output"
                                           : "it has an output, but products of this tile are still missing"};
    if (!job.loads_first && !next_weights_)
        return ItaFault{"nothing has loaded the first rows of its weights (flag 0, or flag 1 of the job before)"};
    if (!job.loads_first && *next_weights_ != job.weights)
        return ItaFault{"the job before has loaded the first rows of other weights", job.weights};
    return std::nullopt;
}

std::optional<ItaFault> ItaEngine::accept(const ItaJob &job) {
    if (auto fault = check(job)) {
        const ItaStep step = steps_of((layer_ ? *layer_ : job).layer)[accepted_.step].step;
        fault->description = std::string(name_of(step)) + ": " + fault->description;
        return fault;
    }
    next_weights_ = job.loads_next ? std::optional(job.next_weights) : std::nullopt;
    advance(job, accepted_);
    layer_ = accepted_ == ItaPosition{} ? std::nullopt : std::optional(job);
    return std::nullopt;
}

void ItaEngine::clear() {
    accepted_ = computed_ = {};
    layer_.reset();
    next_weights_.reset();
}

int64_t ita_accesses(const ItaJob &job) {
    constexpr int64_t tile = ita_tile_bytes / access_bytes, group = ita_group_bytes / access_bytes;
    constexpr int64_t input = tile * (ita_tile / ita_group); // once for each group of columns
    constexpr int64_t output = ita_tile_bytes / (2 * ita_group), bias = 2;
    return input + tile - (job.loads_first ? 0 : group) + (job.loads_next ? group : 0) + (job.without_bias ? 0 : bias) +
           (job.without_output ? 0 : output);
}

int64_t ita_cycles(const ItaJob &job, const ItaTiming &timing) {
    return std::max(product_cycles, ita_accesses(job)) + timing.drain_cycles;
}

int64_t ita_linear_cycles(int64_t rows, int64_t columns, int64_t inner, bool bias, bool output,
                          const ItaTiming &timing) {
    if (rows <= 0 || columns <= 0 || inner <= 0)
        return 0;
    ItaJob job{};
    job.loads_next = true;
    job.without_bias = !bias;
    job.without_output = !output;
    const int64_t last = ita_cycles(job, timing) + timing.next_cycles;
    job.without_output = true;
    const int64_t other = ita_cycles(job, timing) + timing.next_cycles;
    return rows * columns * (last + (inner - 1) * other) - timing.next_cycles;
}

int64_t ita_attention_cycles(int64_t rows, int64_t columns, int64_t inner, const ItaTiming &timing) {
    if (rows <= 0 || columns <= 0 || inner <= 0)
        return 0;
    const int64_t row = ita_linear_cycles(1, columns, inner, false, true, timing) + timing.next_cycles +
                        ita_linear_cycles(1, inner, columns, false, true, timing) + timing.next_cycles;
    return rows * row - timing.next_cycles;
}

} // namespace tilewright
