// Where a NEUREKA job finds its data: the same arithmetic for computing a job and for saying what it touches.
#pragma once

#include "devices/neureka.h"

namespace tilewright {

enum class NeurekaCell { memory, padding, zero };

// What one row, or one column, of the padded input holds.
class NeurekaBorder {
  public:
    static NeurekaBorder of_rows(const NeurekaJob &job, const NeurekaQuirks &quirks);
    static NeurekaBorder of_columns(const NeurekaJob &job, const NeurekaQuirks &quirks);

    uint32_t size() const { return size_; } // of the padded input

    bool padded(uint32_t position) const { return position < padding_end_ || position >= padding_begin_; }
    bool cut(uint32_t position) const { return position >= loaded_; }

  private:
    uint32_t size_ = 0;
    uint32_t padding_end_ = 0;   // padding at the top or left ends here
    uint32_t padding_begin_ = 0; // padding at the bottom or right begins here
    uint32_t loaded_ = 0;        // rows or columns that the input remainder lets through

    static NeurekaBorder of(const NeurekaJob &job, const NeurekaQuirks &quirks, uint32_t tiles, uint32_t outputs,
                            uint32_t input_remainder, uint32_t before, uint32_t after);
};

NeurekaCell neureka_cell(const NeurekaBorder &rows, const NeurekaBorder &columns, uint32_t row, uint32_t column,
                         const NeurekaQuirks &quirks);

inline uint32_t neureka_ceil_divide(uint32_t value, uint32_t by) { return (value + by - 1) / by; }

inline uint32_t input_address(const NeurekaJob &job, uint32_t row, uint32_t column) {
    return job.input + row * job.input_row_stride + column * job.input_pixel_stride;
}

// Address of a channel of an output pixel: tiles of channels follow each other without a gap, groups of 8 channels of
// 32 bit are `output_group_stride` apart inside their tile.
inline uint32_t output_address(const NeurekaJob &job, uint32_t row, uint32_t column, uint32_t channel) {
    const uint32_t pixel = job.output + row * job.output_row_stride + column * job.output_pixel_stride;
    if (job.output_bits == 8)
        return pixel + channel;
    const uint32_t tile_size = job.output_channel_tile();
    const uint32_t in_tile = channel % tile_size;
    const uint32_t tile_start = (channel - in_tile) * 4;
    return pixel + tile_start + in_tile / neureka_group * job.output_group_stride + in_tile % neureka_group * 4;
}

// Address of the first weight block of a channel (output channel, or tile of channels in depthwise mode).
inline uint32_t weight_address(const NeurekaJob &job, uint32_t channel) {
    if (job.mode == NeurekaMode::depthwise_3x3)
        return job.weights + channel * job.weight_bits * job.weight_block_stride;
    return job.weights + channel * job.weight_channel_stride;
}

// Blocks that follow each other from there.
inline uint32_t weight_blocks(const NeurekaJob &job) {
    switch (job.mode) {
    case NeurekaMode::pointwise:
        return job.input_channel_tiles;
    case NeurekaMode::dense_3x3:
        return job.input_channel_tiles * job.weight_bits;
    default:
        return job.weight_bits;
    }
}

// Computes a job whose accesses have been checked.
void compute_neureka(const NeurekaJob &job, const NeurekaMemory &memory, const NeurekaQuirks &quirks);

} // namespace tilewright
