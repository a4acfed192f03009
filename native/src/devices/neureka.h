// A NEUREKA convolution accelerator, one job at a time: what it computes, how many cycles it takes and which bytes it
// touches. The register file, the job queue and the event at the end belong to the device built on top of this.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

using NeurekaRegisters = std::array<uint32_t, 24>;

enum class NeurekaMode { dense_3x3, depthwise_3x3, pointwise, reserved };

// Deviations of a model of the hardware from what the mode's name promises. Default: none of them.
struct NeurekaQuirks {
    // Depthwise jobs that stream in more than 8 channels read their partial sums from wrong places.
    bool misplaced_depthwise_stream_in = false;
    // Rows and columns cut off by the remainder of the input size are 0, also where they are padding with another
    // value; padding at the bottom and the right is counted from the end of the 8x8 buffer, not of the picture. The
    // public RTL (pulp-platform/neureka) gives the cut-off cells precedence in the same way, so software for silicon
    // keeps to padding with 0, for which this makes no difference.
    bool padding_from_buffer_end = false;
    // Strided mode suppresses pixels (0,1), (2,1) and row 1 of each tile instead of all odd rows and columns.
    bool strided_mask_of_3x3_array = false;
    // A remainder of 0 input channels loads none instead of a full tile.
    bool no_channels_for_zero_remainder = false;
    // Depthwise weights that are used again cost no cycle when they come from the TCDM.
    bool free_weight_reuse_from_tcdm = false;

    static NeurekaQuirks gvsoc() { return {true, true, true, true, true}; }

    // Those whose names `is_set` knows.
    template <typename IsSet> static NeurekaQuirks named(const IsSet &is_set) {
        return {is_set("misplaced_depthwise_stream_in"), is_set("padding_from_buffer_end"),
                is_set("strided_mask_of_3x3_array"), is_set("no_channels_for_zero_remainder"),
                is_set("free_weight_reuse_from_tcdm")};
    }
};

struct NeurekaSides {
    uint32_t top;
    uint32_t right;
    uint32_t bottom;
    uint32_t left;
};

// The registers of one job, decoded. Remainders are as written; the sizes below say what they amount to.
struct NeurekaJob {
    NeurekaMode mode;
    uint32_t weight_bits;
    uint32_t scale_bits;
    uint32_t output_bits;
    uint32_t shift;
    bool quantise;
    bool relu;
    bool per_channel_shift;
    bool bias;
    bool signed_input;
    bool stream_in;
    bool strided_2x2;
    bool prefetch;
    bool weights_in_weight_memory;
    bool mode16;
    bool linear;

    uint32_t weights;
    uint32_t input;
    uint32_t output;
    uint32_t scales;
    uint32_t shifts;
    uint32_t biases;

    uint32_t input_pixel_stride;
    uint32_t input_row_stride;
    uint32_t output_group_stride; // between groups of 8 channels of 32-bit outputs
    uint32_t output_pixel_stride;
    uint32_t output_row_stride;
    uint32_t weight_block_stride;
    uint32_t weight_channel_stride; // between output channels; unused in depthwise mode

    uint32_t output_channel_tiles;
    uint32_t input_channel_tiles;
    uint32_t row_tiles;
    uint32_t column_tiles;
    uint32_t output_channel_remainder;
    uint32_t input_channel_remainder;
    uint32_t output_row_remainder;
    uint32_t output_column_remainder;
    uint32_t input_row_remainder;
    uint32_t input_column_remainder;

    NeurekaSides padding;
    uint8_t padding_value;
    int32_t weight_offset;
    uint32_t filter_mask;

    // Channels of a full tile.
    uint32_t input_channel_tile() const { return mode == NeurekaMode::pointwise ? 32 : 28; }
    uint32_t output_channel_tile() const { return mode == NeurekaMode::depthwise_3x3 ? 28 : 32; }
    uint32_t filter_size() const { return mode == NeurekaMode::pointwise ? 1 : 3; }

    // Sizes of the whole job.
    uint32_t rows() const;
    uint32_t columns() const;
    uint32_t output_channels() const;
    uint32_t input_channels(const NeurekaQuirks &quirks) const;

    // Channels of one output tile.
    uint32_t output_channels_of_tile(uint32_t tile) const;

    // Whether the tile's output pixel at (row, column) of the job reaches the memory.
    bool stores(uint32_t row, uint32_t column, const NeurekaQuirks &quirks) const;

    // Multiplications the job asks for, those by padding included, masked filter taps left out.
    int64_t multiplications(const NeurekaQuirks &quirks) const;
    // Multiplications the array can do in a cycle in this mode with these weights.
    double peak_multiplications_per_cycle() const;
};

constexpr uint32_t neureka_tile_side = 6;      // output rows and columns of a tile
constexpr uint32_t neureka_block_bytes = 32;   // weights come in blocks of this size
constexpr uint32_t neureka_group = 8;          // channels of one 32-bit transfer
constexpr uint32_t neureka_filter_taps = 9;    // of the 3x3 modes
constexpr uint32_t neureka_channel_plane = 28; // bits of one tap in a 3x3 weight block

NeurekaJob decode_neureka_job(const NeurekaRegisters &registers);

// What of a job decides how long it takes. Weights come from the weight memory, scales and biases have 32 bits.
struct NeurekaSizes {
    NeurekaMode mode;
    uint32_t height; // of the result
    uint32_t width;
    uint32_t inputs; // channels
    uint32_t outputs;
    uint32_t bottom; // rows of padding
    uint32_t right;  // columns of padding
    uint32_t weight_bits;
    bool scaled;   // results are bytes, not sums
    bool prefetch; // multiplications run behind loads
};

NeurekaJob neureka_job_of(const NeurekaSizes &sizes);

// The memories a job reaches. Pointers into the TCDM lose the bits outside `tcdm_mask` in hardware; a pointer whose
// other bits are neither 0 nor those of `tcdm_base` was meant for another memory and is reported.
struct NeurekaMemory {
    std::span<uint8_t> tcdm;
    uint32_t tcdm_mask;
    uint32_t tcdm_base;
    std::span<uint8_t> weights;
};

enum class NeurekaUse { input, weights, scale, bias, shift, stream_in, output };
std::string_view name_of(NeurekaUse use);

// Bytes [begin, end) of the TCDM or of the weight memory, as offsets in it.
struct NeurekaRange {
    uint32_t begin;
    uint32_t end;
    bool write;
    bool in_weight_memory;
    NeurekaUse use;
};

// Why a job cannot run: an access outside the memories (`use` and `address` say which), or a setting the model lacks.
struct NeurekaFault {
    std::string description;
    std::optional<NeurekaUse> use;
    uint32_t address = 0;
};

std::optional<NeurekaFault> check_neureka(const NeurekaJob &job, const NeurekaMemory &memory,
                                          const NeurekaQuirks &quirks);

// What the job reads and writes, in the order input, weights, normalisation, stream-in, output; neighbouring bytes are
// one range. Bytes that the hardware fetches without using them are left out. Empty for a job that cannot run.
std::vector<NeurekaRange> neureka_ranges(const NeurekaJob &job, const NeurekaMemory &memory,
                                         const NeurekaQuirks &quirks);

// Checks the whole job before anything is written, then computes it. Jobs whose output overlaps their input behave as
// if all of the input had been read first.
std::optional<NeurekaFault> run_neureka(const NeurekaJob &job, const NeurekaMemory &memory,
                                        const NeurekaQuirks &quirks);

// Cycles of the parts of a job; the tile sizes are the array's geometry and no parameters.
struct NeurekaTiming {
    int64_t job = 0;                      // once a job: trigger to first tile and last tile to idle
    int64_t input_tile = 0;               // per input-channel tile
    int64_t stream_in = 0;                // per output tile that streams in, besides its transfers
    int64_t load_pointwise = 0;           // per input-channel tile; 3x3 modes load one pixel a cycle
    int64_t multiply_pointwise = 0;       // besides one cycle per output channel
    int64_t multiply_dense = 0;           // besides one cycle per output channel and weight bit
    int64_t multiply_depthwise = 0;       // likewise
    int64_t scale_bits_per_cycle = 0;     // how fast scales are read
    int64_t full_scale_channels = 0;      // scales read for a full tile
    int64_t scale = 0;                    // per quantised tile, besides reading the scales
    int64_t bias = 0;                     // per quantised tile
    int64_t per_channel_shift = 0;        // per quantised tile
    int64_t quantise = 0;                 // per quantised tile
    int64_t store_pointwise = 0;          // per output tile, besides its transfers
    int64_t prefetch_start_pointwise = 0; // part of the multiplication a prefetch never hides
    int64_t prefetch_start_dense = 0;     // likewise
    int64_t prefetch_finish_dense = 0;    // part it may hide, besides channels and bits
    int64_t prefetch_load = 0;            // what a load takes from the hidden cycles besides its own

    // Sets the field of that name; false if there is none.
    bool set(std::string_view name, int64_t value);
    static std::vector<std::string_view> names();
};

// Cycles of multiplication that still run behind the loads; kept from job to job.
struct NeurekaPrefetch {
    int64_t hidden = 0;
};

enum class NeurekaPhase { overhead, stream_in, load, multiply, quantise, store };
constexpr size_t neureka_phase_count = 6;
std::string_view name_of(NeurekaPhase phase);

struct NeurekaPhaseTotal {
    int64_t cycles = 0; // those that extend the job: multiplications hidden behind loads count 0
    int64_t bytes = 0;  // moved between the memories and the array
};

struct NeurekaActivity {
    int64_t cycles = 0;
    int64_t multiplications = 0;
    std::array<NeurekaPhaseTotal, neureka_phase_count> phases{};
};

// Cycles from the trigger to the idle status, without contention in the memories, and the bytes moved. The job must be
// one that `run_neureka` accepts.
NeurekaActivity time_neureka(const NeurekaJob &job, const NeurekaTiming &timing, const NeurekaQuirks &quirks,
                             NeurekaPrefetch &prefetch);

// The cycles alone, which is much less work.
int64_t neureka_cycles(const NeurekaJob &job, const NeurekaTiming &timing, const NeurekaQuirks &quirks,
                       NeurekaPrefetch &prefetch);

} // namespace tilewright
