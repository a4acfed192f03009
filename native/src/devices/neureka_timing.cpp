// Cycles and traffic of a NEUREKA job.
#include <algorithm>
#include <utility>

#include "devices/neureka.h"
#include "devices/neureka_geometry.h"

namespace tilewright {

namespace {

constexpr std::array timing_fields = {
    std::pair{std::string_view{"job"}, &NeurekaTiming::job},
    std::pair{std::string_view{"input_tile"}, &NeurekaTiming::input_tile},
    std::pair{std::string_view{"stream_in"}, &NeurekaTiming::stream_in},
    std::pair{std::string_view{"load_pointwise"}, &NeurekaTiming::load_pointwise},
    std::pair{std::string_view{"multiply_pointwise"}, &NeurekaTiming::multiply_pointwise},
    std::pair{std::string_view{"multiply_dense"}, &NeurekaTiming::multiply_dense},
    std::pair{std::string_view{"multiply_depthwise"}, &NeurekaTiming::multiply_depthwise},
    std::pair{std::string_view{"scale_bits_per_cycle"}, &NeurekaTiming::scale_bits_per_cycle},
    std::pair{std::string_view{"full_scale_channels"}, &NeurekaTiming::full_scale_channels},
    std::pair{std::string_view{"scale"}, &NeurekaTiming::scale},
    std::pair{std::string_view{"bias"}, &NeurekaTiming::bias},
    std::pair{std::string_view{"per_channel_shift"}, &NeurekaTiming::per_channel_shift},
    std::pair{std::string_view{"quantise"}, &NeurekaTiming::quantise},
    std::pair{std::string_view{"store_pointwise"}, &NeurekaTiming::store_pointwise},
    std::pair{std::string_view{"prefetch_start_pointwise"}, &NeurekaTiming::prefetch_start_pointwise},
    std::pair{std::string_view{"prefetch_start_dense"}, &NeurekaTiming::prefetch_start_dense},
    std::pair{std::string_view{"prefetch_finish_dense"}, &NeurekaTiming::prefetch_finish_dense},
    std::pair{std::string_view{"prefetch_load"}, &NeurekaTiming::prefetch_load},
};

// Walks the tiles of one job in the order of the hardware. Without `detailed` it counts cycles alone.
template <bool detailed> class Clock {
  public:
    Clock(const NeurekaJob &job, const NeurekaTiming &timing, const NeurekaQuirks &quirks, NeurekaPrefetch &prefetch)
        : job_(job), timing_(timing), quirks_(quirks), rows_(NeurekaBorder::of_rows(job, quirks)),
          columns_(NeurekaBorder::of_columns(job, quirks)), hidden_(prefetch.hidden) {}

    NeurekaActivity run() {
        if (!job_.prefetch)
            hidden_ = 0;
        spend(NeurekaPhase::overhead, timing_.job);
        each(tile_.channel, job_.output_channel_tiles, [&] {
            each(tile_.row, job_.row_tiles, [&] { each(tile_.column, job_.column_tiles, [&] { output_tile(); }); });
        });
        if constexpr (detailed)
            activity_.multiplications = job_.multiplications(quirks_);
        return activity_;
    }

  private:
    struct Tile {
        uint32_t channel = 0;
        uint32_t row = 0;
        uint32_t column = 0;
        int64_t channels = 0;
        int64_t rows = 0;
        int64_t columns = 0;
        bool last_of_picture = false;
    };

    // Steps of `index` in order. What one takes depends on its own size and on the one before: from the second to the
    // last but one they are alike, and cycles alone are counted once for all of these.
    template <typename Step> void each(uint32_t &index, uint32_t count, const Step &step) {
        for (index = 0; index < count; ++index) {
            const int64_t before = activity_.cycles;
            step();
            if (!detailed && index == 1 && count > 3) {
                activity_.cycles += (activity_.cycles - before) * (count - 3);
                index = count - 2;
            }
        }
    }

    // `bytes` says how many are moved meanwhile.
    template <typename Bytes> void spend(NeurekaPhase phase, int64_t cycles, const Bytes &bytes) {
        activity_.cycles += cycles;
        if constexpr (detailed) {
            NeurekaPhaseTotal &total = activity_.phases[static_cast<size_t>(phase)];
            total.cycles += cycles;
            total.bytes += bytes();
        }
    }
    void spend(NeurekaPhase phase, int64_t cycles) {
        spend(phase, cycles, [] { return int64_t{0}; });
    }

    void output_tile() {
        constexpr int64_t side = neureka_tile_side;
        tile_.channels = job_.output_channels_of_tile(tile_.channel);
        tile_.rows = std::min<int64_t>(side, job_.rows() - tile_.row * side);
        tile_.columns = std::min<int64_t>(side, job_.columns() - tile_.column * side);
        tile_.last_of_picture = tile_.row + 1 == job_.row_tiles && tile_.column + 1 == job_.column_tiles;
        const int64_t groups = (tile_.channels + neureka_group - 1) / neureka_group;
        if (job_.stream_in)
            spend(NeurekaPhase::stream_in, side * side * groups + timing_.stream_in,
                  [&] { return tile_.rows * tile_.columns * tile_.channels * 4; });
        const uint32_t input_tiles = job_.mode == NeurekaMode::depthwise_3x3 ? 1 : job_.input_channel_tiles;
        for (uint32_t input_tile = 0; input_tile < input_tiles; ++input_tile) {
            spend(NeurekaPhase::overhead, timing_.input_tile);
            load(input_tile);
            if (job_.prefetch)
                multiply_behind_loads(tile_.last_of_picture && input_tile + 1 == input_tiles);
            else
                multiply();
        }
        if (job_.quantise)
            quantise();
        store(groups);
    }

    // Rows or columns of the input that the tile loads.
    static int64_t loaded(uint32_t tile, uint32_t tiles, uint32_t remainder) {
        return tile + 1 == tiles && remainder != 0 ? remainder : neureka_tile_side + 2;
    }

    int64_t load_cycles() const {
        if (job_.mode == NeurekaMode::pointwise)
            return timing_.load_pointwise;
        return loaded(tile_.row, job_.row_tiles, job_.input_row_remainder) *
               loaded(tile_.column, job_.column_tiles, job_.input_column_remainder);
    }

    void load(uint32_t input_tile) {
        spend(NeurekaPhase::load, load_cycles(), [&] { return loaded_bytes(input_tile); });
    }

    int64_t loaded_bytes(uint32_t input_tile) const {
        const uint32_t tile = job_.mode == NeurekaMode::depthwise_3x3 ? tile_.channel : input_tile;
        const int64_t start = int64_t{tile} * job_.input_channel_tile();
        const int64_t channels =
            std::clamp<int64_t>(job_.input_channels(quirks_) - start, 0, job_.input_channel_tile());
        int64_t pixels = 0;
        for (int64_t row = 0; row < tile_.rows + job_.filter_size() - 1; ++row)
            for (int64_t column = 0; column < tile_.columns + job_.filter_size() - 1; ++column)
                pixels += neureka_cell(rows_, columns_, tile_.row * neureka_tile_side + static_cast<uint32_t>(row),
                                       tile_.column * neureka_tile_side + static_cast<uint32_t>(column),
                                       quirks_) == NeurekaCell::memory;
        return pixels * channels;
    }

    int64_t weight_bytes() const {
        constexpr int64_t block = neureka_block_bytes;
        switch (job_.mode) {
        case NeurekaMode::pointwise:
            return block * tile_.channels;
        case NeurekaMode::dense_3x3:
            return block * tile_.channels * job_.weight_bits;
        default:
            return block * job_.weight_bits;
        }
    }

    // Cycles of streaming the weights of one depthwise channel.
    int64_t depthwise_channel_cycles(bool first) const {
        const bool free = quirks_.free_weight_reuse_from_tcdm && !job_.weights_in_weight_memory && !first;
        return free ? 0 : job_.weight_bits;
    }

    void multiply() {
        int64_t cycles = 0;
        switch (job_.mode) {
        case NeurekaMode::pointwise:
            cycles = timing_.multiply_pointwise + tile_.channels;
            break;
        case NeurekaMode::dense_3x3:
            cycles = timing_.multiply_dense + tile_.channels * job_.weight_bits;
            break;
        default:
            cycles = timing_.multiply_depthwise + depthwise_channel_cycles(true) +
                     (tile_.channels - 1) * depthwise_channel_cycles(false);
        }
        spend(NeurekaPhase::multiply, cycles, [&] { return weight_bytes(); });
    }

    // Multiplication still hidden when the load that covers it is over delays the array.
    int64_t exposed() const { return std::max<int64_t>(0, hidden_ - (load_cycles() + timing_.prefetch_load)); }

    // The multiplication of all but the last tile runs on while the next tile is loaded.
    void multiply_behind_loads(bool last) {
        int64_t cycles = 0;
        const auto finish = [&](int64_t count) { (last ? cycles : hidden_) += count; };
        if (job_.mode == NeurekaMode::depthwise_3x3) {
            for (int64_t channel = 0; channel < tile_.channels; ++channel) {
                cycles += exposed();
                hidden_ = channel == 0 ? timing_.multiply_depthwise : 0;
                cycles += hidden_;
                finish(depthwise_channel_cycles(channel == 0));
            }
        } else {
            const bool pointwise = job_.mode == NeurekaMode::pointwise;
            cycles += exposed();
            hidden_ = pointwise ? timing_.prefetch_start_pointwise : timing_.prefetch_start_dense;
            cycles += hidden_;
            finish(pointwise ? tile_.channels : tile_.channels * job_.weight_bits + timing_.prefetch_finish_dense);
        }
        spend(NeurekaPhase::multiply, cycles, [&] { return weight_bytes(); });
    }

    void quantise() {
        // Only a last tile with a written remainder reads fewer scales than a full one.
        const bool partial = tile_.channel + 1 == job_.output_channel_tiles && job_.output_channel_remainder != 0;
        const int64_t port_bits = std::max<int64_t>(1, timing_.scale_bits_per_cycle);
        const int64_t scales = partial ? tile_.channels : timing_.full_scale_channels;
        const int64_t scale_cycles = (scales * job_.scale_bits + port_bits - 1) / port_bits;
        spend(NeurekaPhase::quantise,
              scale_cycles + timing_.scale + (job_.bias ? timing_.bias : 0) + timing_.quantise +
                  (job_.per_channel_shift ? timing_.per_channel_shift : 0),
              [&] {
                  return tile_.channels *
                         (job_.scale_bits / 8 + (job_.bias ? 4 : 0) + (job_.per_channel_shift ? 1 : 0));
              });
    }

    void store(int64_t groups) {
        const int64_t positions = (tile_.rows - 1) * neureka_tile_side + tile_.columns;
        spend(NeurekaPhase::store,
              positions * (job_.output_bits == 8 ? 1 : groups) +
                  (job_.mode == NeurekaMode::pointwise ? timing_.store_pointwise : 0),
              [&] { return stored_bytes(); });
    }

    int64_t stored_bytes() const {
        int64_t pixels = 0;
        for (uint32_t row = 0; row < tile_.rows; ++row)
            for (uint32_t column = 0; column < tile_.columns; ++column)
                pixels += job_.stores(row, column, quirks_);
        return pixels * tile_.channels * job_.output_bits / 8;
    }

    const NeurekaJob &job_;
    const NeurekaTiming &timing_;
    const NeurekaQuirks &quirks_;
    NeurekaBorder rows_;
    NeurekaBorder columns_;
    int64_t &hidden_;
    Tile tile_;
    NeurekaActivity activity_;
};

} // namespace

std::string_view name_of(NeurekaPhase phase) {
    constexpr std::array<std::string_view, neureka_phase_count> names = {"overhead", "stream_in", "load",
                                                                         "multiply", "quantise",  "store"};
    return names[static_cast<size_t>(phase)];
}

bool NeurekaTiming::set(std::string_view name, int64_t value) {
    for (const auto &[field, member] : timing_fields)
        if (field == name) {
            this->*member = value;
            return true;
        }
    return false;
}

std::vector<std::string_view> NeurekaTiming::names() {
    std::vector<std::string_view> names;
    for (const auto &[field, member] : timing_fields)
        names.push_back(field);
    return names;
}

NeurekaActivity time_neureka(const NeurekaJob &job, const NeurekaTiming &timing, const NeurekaQuirks &quirks,
                             NeurekaPrefetch &prefetch) {
    return Clock<true>(job, timing, quirks, prefetch).run();
}

int64_t neureka_cycles(const NeurekaJob &job, const NeurekaTiming &timing, const NeurekaQuirks &quirks,
                       NeurekaPrefetch &prefetch) {
    return Clock<false>(job, timing, quirks, prefetch).run().cycles;
}

} // namespace tilewright
