// Decoding a NEUREKA job, what it touches, and the checks before it runs.
#include "devices/neureka.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "devices/neureka_geometry.h"

namespace tilewright {

namespace {

constexpr uint32_t bits(uint32_t value, uint32_t low, uint32_t count) { return value >> low & ((1u << count) - 1); }
constexpr bool bit(uint32_t value, uint32_t index) { return bits(value, index, 1) != 0; }

// Size of the last tile: a remainder of 0 stands for a full one.
constexpr uint32_t or_full(uint32_t remainder, uint32_t full) { return remainder == 0 ? full : remainder; }

constexpr uint32_t total(uint32_t tiles, uint32_t tile_size, uint32_t last) { return (tiles - 1) * tile_size + last; }

void decode_configuration(NeurekaJob &job, uint32_t configuration) {
    constexpr std::array modes = {NeurekaMode::dense_3x3, NeurekaMode::depthwise_3x3, NeurekaMode::pointwise,
                                  NeurekaMode::reserved};
    job.weight_bits = bits(configuration, 0, 3) + 1;
    job.mode16 = bit(configuration, 3);
    job.quantise = bit(configuration, 4);
    job.mode = modes[bits(configuration, 5, 2)];
    job.linear = bit(configuration, 7);
    job.strided_2x2 = bit(configuration, 8);
    job.weights_in_weight_memory = bit(configuration, 9);
    job.prefetch = bit(configuration, 10);
    job.scale_bits = 8u << bits(configuration, 12, 2);
    job.stream_in = bit(configuration, 14);
    job.shift = bits(configuration, 16, 5);
    job.output_bits = 8u << bits(configuration, 21, 2);
    job.relu = !bit(configuration, 23);
    job.per_channel_shift = bit(configuration, 24);
    job.bias = bit(configuration, 25);
    job.signed_input = bit(configuration, 26);
}

// One run of bytes as the job addresses it, before the TCDM's mask.
struct Run {
    uint32_t address;
    uint32_t length;
    NeurekaUse use;
};

// Calls `visit(run)` for every run of bytes the job touches, until it returns false.
template <typename Visit> bool visit_input(const NeurekaJob &job, const NeurekaQuirks &quirks, const Visit &visit) {
    const NeurekaBorder rows = NeurekaBorder::of_rows(job, quirks);
    const NeurekaBorder columns = NeurekaBorder::of_columns(job, quirks);
    const uint32_t channels = job.input_channels(quirks);
    for (uint32_t row = 0; row < rows.size(); ++row)
        for (uint32_t column = 0; column < columns.size(); ++column)
            if (neureka_cell(rows, columns, row, column, quirks) == NeurekaCell::memory &&
                !visit({input_address(job, row, column), channels, NeurekaUse::input}))
                return false;
    return true;
}

template <typename Visit> bool visit_weights(const NeurekaJob &job, const Visit &visit) {
    const uint32_t sequences =
        job.mode == NeurekaMode::depthwise_3x3 ? job.output_channel_tiles : job.output_channels();
    for (uint32_t sequence = 0; sequence < sequences; ++sequence)
        for (uint32_t block = 0; block < weight_blocks(job); ++block)
            if (!visit({weight_address(job, sequence) + block * job.weight_block_stride, neureka_block_bytes,
                        NeurekaUse::weights}))
                return false;
    return true;
}

template <typename Visit> bool visit_normalisation(const NeurekaJob &job, const Visit &visit) {
    const uint32_t channels = job.output_channels();
    return !job.quantise || (visit({job.scales, channels * job.scale_bits / 8, NeurekaUse::scale}) &&
                             (!job.bias || visit({job.biases, channels * 4, NeurekaUse::bias})) &&
                             (!job.per_channel_shift || visit({job.shifts, channels, NeurekaUse::shift})));
}

template <typename Visit>
bool visit_output(const NeurekaJob &job, const NeurekaQuirks &quirks, NeurekaUse use, const Visit &visit) {
    const uint32_t channel_bytes = job.output_bits / 8;
    const uint32_t tile = job.output_channel_tile();
    const uint32_t group = job.output_bits == 8 ? tile : neureka_group;
    for (uint32_t row = 0; row < job.rows(); ++row)
        for (uint32_t column = 0; column < job.columns(); ++column) {
            if (!job.stores(row, column, quirks))
                continue;
            for (uint32_t start = 0; start < job.output_channels(); start += tile) {
                const uint32_t end = std::min(start + tile, job.output_channels());
                for (uint32_t channel = start; channel < end; channel += group) {
                    const uint32_t length = std::min(group, end - channel) * channel_bytes;
                    if (!visit({output_address(job, row, column, channel), length, use}))
                        return false;
                }
            }
        }
    return true;
}

template <typename Visit> bool visit_runs(const NeurekaJob &job, const NeurekaQuirks &quirks, const Visit &visit) {
    return visit_input(job, quirks, visit) && visit_weights(job, visit) && visit_normalisation(job, visit) &&
           (!job.stream_in || visit_output(job, quirks, NeurekaUse::stream_in, visit)) &&
           visit_output(job, quirks, NeurekaUse::output, visit);
}

bool in_weight_memory(const NeurekaJob &job, NeurekaUse use) {
    return use == NeurekaUse::weights && job.weights_in_weight_memory;
}

bool inside(const NeurekaJob &job, const NeurekaMemory &memory, const Run &run) {
    if (in_weight_memory(job, run.use))
        return uint64_t{run.address} + run.length <= memory.weights.size();
    const uint32_t window = run.address & ~memory.tcdm_mask;
    if (window != 0 && window != (memory.tcdm_base & ~memory.tcdm_mask))
        return false;
    return uint64_t{run.address & memory.tcdm_mask} + run.length <= memory.tcdm.size();
}

NeurekaFault outside(const NeurekaJob &job, const Run &run) {
    char text[160];
    std::snprintf(text, sizeof text, "%s at 0x%08x (%u bytes) is outside the %s", name_of(run.use).data(), run.address,
                  run.length, in_weight_memory(job, run.use) ? "weight memory" : "TCDM");
    return {text, run.use, run.address};
}

// Jobs beyond this many values hold no network layer; their registers were never written properly.
constexpr uint64_t largest_job = uint64_t{1} << 27;

const char *unsupported_mode(const NeurekaJob &job) {
    if (job.mode == NeurekaMode::reserved)
        return "filter mode 3 is reserved";
    if (job.mode16)
        return "16-bit mode is not modelled";
    if (job.linear)
        return "linear mode is not modelled";
    if (job.quantise && job.scale_bits > 32)
        return "scale width 3 is reserved";
    if (job.output_bits != 8 && job.output_bits != 32)
        return "outputs have 8 or 32 bit";
    if (job.stream_in && job.output_bits != 32)
        return "stream-in needs 32-bit outputs";
    return nullptr;
}

const char *unsupported_size(const NeurekaJob &job, const NeurekaQuirks &quirks) {
    if (job.output_channel_tiles == 0 || job.input_channel_tiles == 0 || job.row_tiles == 0 || job.column_tiles == 0)
        return "a number of tiles is 0";
    const uint32_t input_side = neureka_tile_side + job.filter_size() - 1;
    if (job.output_channel_remainder > job.output_channel_tile() ||
        job.input_channel_remainder > job.input_channel_tile() || job.output_row_remainder > neureka_tile_side ||
        job.output_column_remainder > neureka_tile_side || job.input_row_remainder > input_side ||
        job.input_column_remainder > input_side)
        return "a remainder is larger than a tile";
    const NeurekaSides &padding = job.padding;
    if (job.mode == NeurekaMode::pointwise && (padding.top | padding.right | padding.bottom | padding.left) != 0)
        return "padding needs a 3x3 mode";
    const uint64_t channels = std::max(job.input_channels(quirks), job.output_channels());
    const uint64_t weights = uint64_t{job.output_channels()} * job.input_channels(quirks);
    const uint64_t pixels = (uint64_t{job.rows()} + 2) * (uint64_t{job.columns()} + 2);
    if (pixels > largest_job || pixels * channels > largest_job || weights > largest_job)
        return "the job is too large to be meant";
    return nullptr;
}

} // namespace

std::string_view name_of(NeurekaUse use) {
    constexpr std::array<std::string_view, 7> names = {"input", "weights",   "scale", "bias",
                                                       "shift", "stream_in", "output"};
    return names[static_cast<size_t>(use)];
}

NeurekaJob decode_neureka_job(const NeurekaRegisters &registers) {
    const auto high = [&](size_t index) { return registers[index] >> 16; };
    const auto low = [&](size_t index) { return registers[index] & 0xffff; };
    NeurekaJob job{};
    job.weights = registers[0];
    job.input = registers[1];
    job.output = registers[2];
    job.scales = registers[3];
    job.shifts = registers[4];
    job.biases = registers[5];
    job.input_pixel_stride = registers[6];
    job.input_row_stride = registers[7];
    job.output_group_stride = registers[9];
    job.output_pixel_stride = registers[10];
    job.output_row_stride = registers[11];
    job.weight_block_stride = registers[12];
    job.weight_channel_stride = registers[13];
    job.output_channel_remainder = high(15);
    job.input_channel_remainder = low(15);
    job.output_row_remainder = high(16);
    job.output_column_remainder = low(16);
    job.input_row_remainder = high(17);
    job.input_column_remainder = low(17);
    job.output_channel_tiles = high(18);
    job.input_channel_tiles = low(18);
    job.row_tiles = high(19);
    job.column_tiles = low(19);
    job.padding = {bits(registers[20], 28, 4), bits(registers[20], 24, 4), bits(registers[20], 20, 4),
                   bits(registers[20], 16, 4)};
    job.padding_value = static_cast<uint8_t>(registers[20]);
    job.weight_offset = static_cast<int32_t>(registers[21]);
    job.filter_mask = bits(registers[22], 0, neureka_filter_taps);
    decode_configuration(job, registers[23]);
    return job;
}

NeurekaJob neureka_job_of(const NeurekaSizes &sizes) {
    const auto rest = [](uint32_t size, uint32_t tile) { return size - (size - 1) / tile * tile; };
    NeurekaJob job{};
    job.mode = sizes.mode;
    job.weight_bits = sizes.weight_bits;
    job.scale_bits = 32;
    job.output_bits = sizes.scaled ? 8 : 32;
    job.quantise = job.bias = sizes.scaled;
    job.prefetch = sizes.prefetch;
    job.weights_in_weight_memory = true;
    const uint32_t border = job.filter_size() - 1;
    job.output_channel_tiles = neureka_ceil_divide(sizes.outputs, job.output_channel_tile());
    job.input_channel_tiles = neureka_ceil_divide(sizes.inputs, job.input_channel_tile());
    job.row_tiles = neureka_ceil_divide(sizes.height, neureka_tile_side);
    job.column_tiles = neureka_ceil_divide(sizes.width, neureka_tile_side);
    job.output_channel_remainder = rest(sizes.outputs, job.output_channel_tile());
    job.input_channel_remainder = rest(sizes.inputs, job.input_channel_tile());
    job.output_row_remainder = rest(sizes.height, neureka_tile_side);
    job.output_column_remainder = rest(sizes.width, neureka_tile_side);
    job.input_row_remainder = job.output_row_remainder + border - sizes.bottom;
    job.input_column_remainder = job.output_column_remainder + border - sizes.right;
    job.padding = {0, sizes.right, sizes.bottom, 0};
    return job;
}

uint32_t NeurekaJob::rows() const {
    return total(row_tiles, neureka_tile_side, or_full(output_row_remainder, neureka_tile_side));
}

uint32_t NeurekaJob::columns() const {
    return total(column_tiles, neureka_tile_side, or_full(output_column_remainder, neureka_tile_side));
}

uint32_t NeurekaJob::output_channels() const {
    return total(output_channel_tiles, output_channel_tile(), output_channels_of_tile(output_channel_tiles - 1));
}

uint32_t NeurekaJob::input_channels(const NeurekaQuirks &quirks) const {
    const uint32_t last = quirks.no_channels_for_zero_remainder
                              ? input_channel_remainder
                              : or_full(input_channel_remainder, input_channel_tile());
    return total(input_channel_tiles, input_channel_tile(), last);
}

uint32_t NeurekaJob::output_channels_of_tile(uint32_t tile) const {
    return tile + 1 == output_channel_tiles ? or_full(output_channel_remainder, output_channel_tile())
                                            : output_channel_tile();
}

// Strided mode follows the public RTL (pulp-platform/neureka): the array computes the stride-1 result and stores the
// pixels of even rows and columns at the addresses they would have without the mode, so that a driver packs them by
// halving the output's pixel and row strides.
bool NeurekaJob::stores(uint32_t row, uint32_t column, const NeurekaQuirks &quirks) const {
    if (!strided_2x2)
        return true;
    if (!quirks.strided_mask_of_3x3_array)
        return row % 2 == 0 && column % 2 == 0;
    const uint32_t in_row = row % neureka_tile_side;
    const uint32_t in_column = column % neureka_tile_side;
    return in_row != 1 && !(in_column == 1 && (in_row == 0 || in_row == 2));
}

int64_t NeurekaJob::multiplications(const NeurekaQuirks &quirks) const {
    const int64_t outputs = int64_t{rows()} * columns() * output_channels();
    if (mode == NeurekaMode::pointwise)
        return outputs * input_channels(quirks);
    const int64_t taps = int64_t{neureka_filter_taps} - std::popcount(filter_mask);
    return outputs * taps * (mode == NeurekaMode::dense_3x3 ? input_channels(quirks) : 1);
}

double NeurekaJob::peak_multiplications_per_cycle() const {
    constexpr double array = neureka_tile_side * neureka_tile_side;
    switch (mode) {
    case NeurekaMode::pointwise:
        return array * input_channel_tile();
    case NeurekaMode::dense_3x3:
        return array * neureka_filter_taps * input_channel_tile() / weight_bits;
    default:
        return array * neureka_filter_taps / weight_bits;
    }
}

std::optional<NeurekaFault> check_neureka(const NeurekaJob &job, const NeurekaMemory &memory,
                                          const NeurekaQuirks &quirks) {
    const char *reason = unsupported_mode(job);
    if (reason == nullptr)
        reason = unsupported_size(job, quirks);
    if (reason != nullptr)
        return NeurekaFault{reason, std::nullopt, 0};
    std::optional<NeurekaFault> fault;
    visit_runs(job, quirks, [&](const Run &run) {
        if (inside(job, memory, run))
            return true;
        fault = outside(job, run);
        return false;
    });
    return fault;
}

std::vector<NeurekaRange> neureka_ranges(const NeurekaJob &job, const NeurekaMemory &memory,
                                         const NeurekaQuirks &quirks) {
    std::vector<NeurekaRange> ranges;
    if (check_neureka(job, memory, quirks))
        return ranges;
    visit_runs(job, quirks, [&](const Run &run) {
        const bool in_weights = in_weight_memory(job, run.use);
        const uint32_t begin = in_weights ? run.address : run.address & memory.tcdm_mask;
        if (!ranges.empty() && ranges.back().use == run.use && ranges.back().end == begin)
            ranges.back().end += run.length;
        else
            ranges.push_back({begin, begin + run.length, run.use == NeurekaUse::output, in_weights, run.use});
        return true;
    });
    return ranges;
}

std::optional<NeurekaFault> run_neureka(const NeurekaJob &job, const NeurekaMemory &memory,
                                        const NeurekaQuirks &quirks) {
    std::optional<NeurekaFault> fault = check_neureka(job, memory, quirks);
    if (!fault)
        compute_neureka(job, memory, quirks);
    return fault;
}

} // namespace tilewright
