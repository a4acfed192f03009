// The values of a NEUREKA job.
//
// The padded input is gathered once; then, tile by tile of output channels as the hardware goes, the weights are
// unpacked, all pixels are computed and stored. Weights are unsigned codes plus one common offset, so that a sum is
// (sum of input * code) + offset * (sum of input), where the last factor is the same for all output channels.
#include <algorithm>
#include <cstring>

#include "devices/neureka_geometry.h"

namespace tilewright {

namespace {

// Products of 16-bit values may be added in 32 bit this often: 8192 * 255 * 255 < 2^31.
constexpr size_t safe_products = 8192;

uint64_t wrapping_multiply(int64_t left, int64_t right) {
    return static_cast<uint64_t>(left) * static_cast<uint64_t>(right);
}

int64_t wrapping_add(int64_t left, uint64_t right) { return static_cast<int64_t>(static_cast<uint64_t>(left) + right); }

template <typename Value> Value read_unaligned(const uint8_t *bytes) {
    Value value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

// Sums of products of one input run with the weights of four output channels.
void add_four_products(const int16_t *input, const int16_t *weights, size_t distance, size_t count, int64_t *sums) {
    for (size_t start = 0; start < count; start += safe_products) {
        const size_t end = std::min(count, start + safe_products);
        const int16_t *first = weights;
        const int16_t *second = weights + distance;
        const int16_t *third = weights + 2 * distance;
        const int16_t *fourth = weights + 3 * distance;
        int32_t a = 0;
        int32_t b = 0;
        int32_t c = 0;
        int32_t d = 0;
        for (size_t index = start; index < end; ++index) {
            a += input[index] * first[index];
            b += input[index] * second[index];
            c += input[index] * third[index];
            d += input[index] * fourth[index];
        }
        sums[0] += a;
        sums[1] += b;
        sums[2] += c;
        sums[3] += d;
    }
}

class Computation {
  public:
    Computation(const NeurekaJob &job, const NeurekaMemory &memory, const NeurekaQuirks &quirks)
        : job_(job), memory_(memory), quirks_(quirks), rows_(job.rows()), columns_(job.columns()),
          filter_(job.filter_size()), taps_(filter_ * filter_), channels_(job.input_channels(quirks)),
          depth_((std::max(channels_, depthwise() ? job.output_channels() : 0) + 7) / 8 * 8),
          mask_(job.mode == NeurekaMode::pointwise ? 0 : job.filter_mask) {}

    void run() {
        gather_input();
        if (!depthwise())
            sum_input();
        for (tile_ = 0; tile_ < job_.output_channel_tiles; ++tile_) {
            first_channel_ = tile_ * job_.output_channel_tile();
            tile_channels_ = job_.output_channels_of_tile(tile_);
            unpack_weights();
            sums_.assign(size_t{rows_} * columns_ * row_of_sums, 0);
            if (depthwise())
                multiply_depthwise();
            else
                multiply_dense();
            for (uint32_t row = 0; row < rows_; row += neureka_tile_side)
                for (uint32_t column = 0; column < columns_; column += neureka_tile_side)
                    finish_tile(row, column);
        }
    }

  private:
    static constexpr size_t row_of_sums = 32; // sums of one pixel in a tile of output channels

    bool depthwise() const { return job_.mode == NeurekaMode::depthwise_3x3; }

    uint8_t *tcdm(uint32_t address) const { return memory_.tcdm.data() + (address & memory_.tcdm_mask); }

    const uint8_t *weight_block(uint32_t sequence, uint32_t block) const {
        const uint32_t address = weight_address(job_, sequence) + block * job_.weight_block_stride;
        return job_.weights_in_weight_memory ? memory_.weights.data() + address : tcdm(address);
    }

    int16_t input_value(uint8_t byte) const {
        return job_.signed_input ? static_cast<int16_t>(static_cast<int8_t>(byte)) : static_cast<int16_t>(byte);
    }

    int16_t *input_pixel(uint32_t row, uint32_t column) {
        return input_.data() + (size_t{row} * (columns_ + filter_ - 1) + column) * depth_;
    }

    int64_t *pixel_sums(uint32_t row, uint32_t column) {
        return sums_.data() + (size_t{row} * columns_ + column) * row_of_sums;
    }

    void gather_input() {
        const NeurekaBorder rows = NeurekaBorder::of_rows(job_, quirks_);
        const NeurekaBorder columns = NeurekaBorder::of_columns(job_, quirks_);
        input_.assign(size_t{rows.size()} * columns.size() * depth_, 0);
        for (uint32_t row = 0; row < rows.size(); ++row)
            for (uint32_t column = 0; column < columns.size(); ++column) {
                int16_t *values = input_pixel(row, column);
                switch (neureka_cell(rows, columns, row, column, quirks_)) {
                case NeurekaCell::memory: {
                    const uint8_t *bytes = tcdm(input_address(job_, row, column));
                    for (uint32_t channel = 0; channel < channels_; ++channel)
                        values[channel] = input_value(bytes[channel]);
                    break;
                }
                case NeurekaCell::padding:
                    std::fill_n(values, channels_, input_value(job_.padding_value));
                    break;
                case NeurekaCell::zero:
                    break;
                }
            }
    }

    // Sum of all inputs that meet an unmasked tap of each output pixel.
    void sum_input() {
        const uint32_t width = columns_ + filter_ - 1;
        std::vector<int64_t> pixel(size_t{rows_ + filter_ - 1} * width);
        for (size_t index = 0; index < pixel.size(); ++index)
            for (size_t channel = 0; channel < depth_; ++channel)
                pixel[index] += input_[index * depth_ + channel];
        input_sums_.assign(size_t{rows_} * columns_, 0);
        for (uint32_t tap = 0; tap < taps_; ++tap) {
            if (mask_ >> tap & 1)
                continue;
            for (uint32_t row = 0; row < rows_; ++row)
                for (uint32_t column = 0; column < columns_; ++column)
                    input_sums_[size_t{row} * columns_ + column] +=
                        pixel[size_t{row + tap / filter_} * width + column + tap % filter_];
        }
    }

    // Codes of one output channel, ordered [tap][input channel].
    int16_t *codes_of(uint32_t channel) { return codes_.data() + size_t{channel} * taps_ * depth_; }

    void unpack_weights() {
        // Channels come in fours below, so there are always whole fours.
        const size_t rows = depthwise() ? 1 : (tile_channels_ + 3) / 4 * 4;
        codes_.assign(rows * taps_ * depth_, 0);
        if (job_.mode == NeurekaMode::pointwise)
            for (uint32_t channel = 0; channel < tile_channels_; ++channel)
                unpack_pointwise(channel);
        else if (depthwise())
            unpack_planes(codes_.data(), tile_, 0, first_channel_, tile_channels_);
        else
            for (uint32_t channel = 0; channel < tile_channels_; ++channel)
                for (uint32_t input_tile = 0; input_tile < job_.input_channel_tiles; ++input_tile) {
                    const uint32_t start = input_tile * neureka_channel_plane;
                    const uint32_t count = std::min(neureka_channel_plane, channels_ - start);
                    unpack_planes(codes_of(channel), first_channel_ + channel, input_tile * job_.weight_bits, start,
                                  count);
                }
    }

    // A block holds, four channels at a time, a nibble for each of 8 weight bits.
    void unpack_pointwise(uint32_t channel) {
        int16_t *codes = codes_of(channel);
        const uint32_t used_bits = (1u << job_.weight_bits) - 1;
        for (uint32_t input_channel = 0; input_channel < channels_; ++input_channel) {
            const uint32_t in_block = input_channel % 32;
            const uint8_t *block = weight_block(first_channel_ + channel, input_channel / 32);
            uint32_t word = read_unaligned<uint32_t>(block + in_block / 4 * 4) >> in_block % 4 & 0x11111111u;
            // Gathers bits 0, 4, 8, ... 28 into bits 0 to 7.
            word = (word | word >> 3) & 0x03030303u;
            word = (word | word >> 6) & 0x000f000fu;
            word = (word | word >> 12) & 0xffu;
            codes[input_channel] = static_cast<int16_t>(word & used_bits);
        }
    }

    // A block holds one bit of the weights of 28 channels, tap by tap; `block` is the one with the lowest bit.
    void unpack_planes(int16_t *codes, uint32_t sequence, uint32_t block, uint32_t start, uint32_t count) const {
        for (uint32_t weight_bit = 0; weight_bit < job_.weight_bits; ++weight_bit) {
            const uint8_t *bytes = weight_block(sequence, block + weight_bit);
            for (uint32_t tap = 0; tap < taps_; ++tap) {
                if (mask_ >> tap & 1)
                    continue;
                // 28 is a multiple of 4, so a tap starts at the beginning or in the middle of a byte.
                const uint32_t first_bit = tap * neureka_channel_plane;
                const uint32_t plane = read_unaligned<uint32_t>(bytes + first_bit / 8) >> first_bit % 8;
                int16_t *values = codes + size_t{tap} * depth_ + start;
                for (uint32_t channel = 0; channel < count; ++channel)
                    values[channel] =
                        static_cast<int16_t>(values[channel] + static_cast<int>((plane >> channel & 1) << weight_bit));
            }
        }
    }

    void multiply_dense() {
        const size_t distance = size_t{taps_} * depth_;
        const size_t run = filter_ * depth_; // the taps of a filter row meet neighbouring pixels
        for (uint32_t row = 0; row < rows_; ++row)
            for (uint32_t column = 0; column < columns_; ++column) {
                int64_t *sums = pixel_sums(row, column);
                for (uint32_t channel = 0; channel < tile_channels_; channel += 4)
                    for (uint32_t filter_row = 0; filter_row < filter_; ++filter_row)
                        add_four_products(input_pixel(row + filter_row, column), codes_of(channel) + filter_row * run,
                                          distance, run, sums + channel);
                const uint64_t offset =
                    wrapping_multiply(job_.weight_offset, input_sums_[size_t{row} * columns_ + column]);
                for (uint32_t channel = 0; channel < tile_channels_; ++channel)
                    sums[channel] = wrapping_add(sums[channel], offset);
            }
    }

    void multiply_depthwise() {
        for (uint32_t row = 0; row < rows_; ++row)
            for (uint32_t column = 0; column < columns_; ++column) {
                std::array<int32_t, row_of_sums> products{};
                std::array<int32_t, row_of_sums> inputs{};
                for (uint32_t tap = 0; tap < taps_; ++tap) {
                    if (mask_ >> tap & 1)
                        continue;
                    const int16_t *values = input_pixel(row + tap / filter_, column + tap % filter_) + first_channel_;
                    const int16_t *codes = codes_.data() + size_t{tap} * depth_ + first_channel_;
                    for (uint32_t channel = 0; channel < tile_channels_; ++channel) {
                        products[channel] += values[channel] * codes[channel];
                        inputs[channel] += values[channel];
                    }
                }
                int64_t *sums = pixel_sums(row, column);
                for (uint32_t channel = 0; channel < tile_channels_; ++channel)
                    sums[channel] = products[channel] + int64_t{job_.weight_offset} * inputs[channel];
            }
    }

    // Adds what is streamed in to the sums of one 6x6 tile, quantises and stores them.
    void finish_tile(uint32_t first_row, uint32_t first_column) {
        const uint32_t rows = std::min(rows_, first_row + neureka_tile_side);
        const uint32_t columns = std::min(columns_, first_column + neureka_tile_side);
        if (job_.stream_in)
            for (uint32_t row = first_row; row < rows; ++row)
                for (uint32_t column = first_column; column < columns; ++column)
                    stream_in(row, column);
        for (uint32_t row = first_row; row < rows; ++row)
            for (uint32_t column = first_column; column < columns; ++column)
                if (job_.stores(row, column, quirks_))
                    store(row, column);
    }

    void stream_in(uint32_t row, uint32_t column) {
        int64_t *sums = pixel_sums(row, column);
        for (uint32_t channel = 0; channel < tile_channels_; ++channel) {
            const uint32_t offset =
                depthwise() && quirks_.misplaced_depthwise_stream_in
                    ? misplaced_address(row, column, channel) & memory_.tcdm_mask
                    : output_address(job_, row, column, first_channel_ + channel) & memory_.tcdm_mask;
            // Only the misplaced address can be outside, the others have been checked.
            if (size_t{offset} + 4 <= memory_.tcdm.size())
                sums[channel] += read_unaligned<int32_t>(memory_.tcdm.data() + offset);
        }
    }

    // The n-th group of 8 channels that is read goes where the n-th pixel should.
    uint32_t misplaced_address(uint32_t row, uint32_t column, uint32_t channel) const {
        const uint32_t groups = neureka_ceil_divide(tile_channels_, neureka_group);
        const uint32_t in_row = row % neureka_tile_side;
        const uint32_t in_column = column % neureka_tile_side;
        const uint32_t group = (in_row * neureka_tile_side + in_column) * groups + channel / neureka_group;
        return output_address(job_, row - in_row + group / neureka_tile_side,
                              column - in_column + group % neureka_tile_side, first_channel_) +
               channel % neureka_group * 4;
    }

    uint32_t scale(uint32_t channel) const {
        const uint8_t *bytes = tcdm(job_.scales) + size_t{channel} * (job_.scale_bits / 8);
        switch (job_.scale_bits) {
        case 8:
            return *bytes;
        case 16:
            return read_unaligned<uint16_t>(bytes);
        default:
            return read_unaligned<uint32_t>(bytes);
        }
    }

    int64_t quantised(int64_t sum, uint32_t channel) const {
        auto value = static_cast<int64_t>(wrapping_multiply(sum, scale(channel)));
        if (job_.bias) {
            const auto bias = read_unaligned<int32_t>(tcdm(job_.biases) + size_t{channel} * 4);
            value = static_cast<int32_t>(wrapping_add(value, static_cast<uint64_t>(int64_t{bias})));
        }
        const uint32_t shift = job_.per_channel_shift ? tcdm(job_.shifts)[channel] : job_.shift;
        value >>= std::min(shift, 63u);
        if (job_.output_bits == 8)
            return job_.relu ? std::clamp<int64_t>(value, 0, 255) : std::clamp<int64_t>(value, -128, 127);
        return job_.relu ? std::clamp<int64_t>(value, 0, 0xffffffff) : value;
    }

    void store(uint32_t row, uint32_t column) {
        const int64_t *sums = pixel_sums(row, column);
        for (uint32_t channel = 0; channel < tile_channels_; ++channel) {
            const uint32_t absolute = first_channel_ + channel;
            const int64_t value = job_.quantise ? quantised(sums[channel], absolute) : sums[channel];
            uint8_t *target = tcdm(output_address(job_, row, column, absolute));
            const auto low_bits = static_cast<uint32_t>(value);
            if (job_.output_bits == 8)
                *target = static_cast<uint8_t>(low_bits);
            else
                std::memcpy(target, &low_bits, sizeof low_bits);
        }
    }

    const NeurekaJob &job_;
    const NeurekaMemory &memory_;
    const NeurekaQuirks &quirks_;
    const uint32_t rows_;
    const uint32_t columns_;
    const uint32_t filter_;
    const uint32_t taps_;
    const uint32_t channels_;
    const size_t depth_; // channels of the gathered input, whole vectors
    const uint32_t mask_;

    uint32_t tile_ = 0;
    uint32_t first_channel_ = 0;
    uint32_t tile_channels_ = 0;
    std::vector<int16_t> input_;
    std::vector<int64_t> input_sums_;
    std::vector<int16_t> codes_;
    std::vector<int64_t> sums_;
};

} // namespace

void compute_neureka(const NeurekaJob &job, const NeurekaMemory &memory, const NeurekaQuirks &quirks) {
    Computation(job, memory, quirks).run();
}

} // namespace tilewright
