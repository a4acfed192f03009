// ITA, an accelerator for integer attention: its arithmetic, and the engine that computes a layer tile product by tile
// product. Registers, the queue of jobs and the event at the end belong to the device built on top of this.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

constexpr uint32_t ita_tile = 64; // rows and columns of a tile
constexpr uint32_t ita_tile_bytes = ita_tile * ita_tile;
constexpr uint32_t ita_group = 16;                         // columns computed at once, and those of a softmax step
constexpr uint32_t ita_group_bytes = ita_group * ita_tile; // weights of one group
constexpr uint32_t ita_bias_bytes = 3 * ita_tile;
constexpr uint32_t ita_tile_limit = 8; // along S, E, P and F: with more of them sums would not fit their 26 bits

// clip(((sum * mult) >> shift) + add), rounded half up.
struct ItaScale {
    uint32_t mult = 0;
    uint32_t shift = 0;
    int32_t add = 0;
};
int8_t ita_requantise(int64_t sum, const ItaScale &scale);

enum class ItaActivation : uint8_t { identity, gelu, relu, reserved };
struct ItaFunction {
    ItaActivation kind = ItaActivation::identity;
    int32_t b = 0; // of the polynomial of GELU
    int32_t c = 0;
    ItaScale scale;
};
int8_t ita_activate(int8_t value, const ItaFunction &function);

// A row of a softmax, of which columns come in groups.
struct ItaRow {
    int32_t top = -128;
    uint32_t sum = 0;
    void take(const int8_t *group);
    uint32_t inverse() const { return sum == 0 ? 0 : 65280 / sum; }
    uint8_t weight(int32_t score, uint32_t inverse) const;
};

using ItaRegisters = std::array<uint32_t, 17>;

enum class ItaLayer : uint8_t { attention, feed_forward, linear, single_attention };
enum class ItaStep : uint8_t { query, key, value, scores, mix, output, first, second, product };
std::string_view name_of(ItaStep step);

// The registers of one job, a product of two tiles, decoded.
struct ItaJob {
    uint32_t input;
    uint32_t weights;
    uint32_t next_weights;
    uint32_t bias;
    uint32_t output;
    std::array<uint32_t, 4> tiles; // along S, E, P and F
    std::array<ItaScale, 8> scales;
    ItaLayer layer;
    ItaFunction function;
    bool loads_first; // the first 16 rows of weights, which the job before has not loaded
    bool loads_next;  // those of the next job, at the end
    bool without_bias;
    bool bias_along_rows;
    bool without_output;
};

ItaJob decode_ita_job(const ItaRegisters &registers);

// Cycles of the parts of a job.
struct ItaTiming {
    int64_t drain_cycles = 0; // from the last product until its result has left the engine
    int64_t next_cycles = 0;  // between two jobs of which the second waited for the first

    static constexpr std::array<std::string_view, 2> names = {"drain_cycles", "next_cycles"};
    void set(std::string_view name, int64_t value) { (name == names[0] ? drain_cycles : next_cycles) = value; }
};

// Accesses of 128 bytes to the memory.
int64_t ita_accesses(const ItaJob &job);
// A product needs 256 cycles; all its accesses share one port.
int64_t ita_cycles(const ItaJob &job, const ItaTiming &timing);

// How long a part of a layer keeps the engine busy where its jobs follow each other at once: `rows` x `columns` tiles of
// results with `inner` products each, which leave sums where there is no output yet, and a softmax with `rows` x `columns`
// tiles of scores.
int64_t ita_linear_cycles(int64_t rows, int64_t columns, int64_t inner, bool bias, bool output,
                          const ItaTiming &timing);
int64_t ita_attention_cycles(int64_t rows, int64_t columns, int64_t inner, const ItaTiming &timing);

// Bytes [begin, end) of the memory, as offsets in it.
struct ItaRange {
    uint32_t begin;
    uint32_t end;
    bool write;
    std::string_view use;
};
std::vector<ItaRange> ita_ranges(const ItaJob &job);

struct ItaFault {
    std::string description;
    uint32_t address = 0;
};

// Where a layer is: jobs do not say which product they are, so they come in the layer's order.
struct ItaPosition {
    uint32_t step = 0;  // index among the steps of the layer
    uint32_t row = 0;   // of the attention's row tiles
    uint32_t tile = 0;  // of results
    uint32_t inner = 0; // product of that tile

    bool operator==(const ItaPosition &) const = default;
};

class ItaEngine {
  public:
    explicit ItaEngine(std::span<uint8_t> memory) : memory_(memory) {}

    // Says what is wrong with a job that comes next, and moves on to the one behind it where nothing is.
    std::optional<ItaFault> accept(const ItaJob &job);
    // Computes jobs that were accepted, in their order.
    void run(const ItaJob &job);
    void clear();

    // The rows of the softmax as they are now.
    const std::array<ItaRow, ita_tile> &rows() const { return rows_; }

  private:
    // What a job is, from its place in the layer.
    struct Place {
        ItaStep step;
        bool first_inner;
        bool last_inner;
        bool first_tile;
    };
    static Place place_of(const ItaJob &job, const ItaPosition &position);
    static void advance(const ItaJob &job, ItaPosition &position);
    std::optional<ItaFault> check(const ItaJob &job) const;
    void load_input(const ItaJob &job, const Place &place);
    void load_weights(const ItaJob &job);
    void multiply();
    void finish(const ItaJob &job, const Place &place);

    std::span<uint8_t> memory_;
    ItaPosition accepted_, computed_;
    std::optional<ItaJob> layer_;          // first job of the layer that is not complete
    std::optional<uint32_t> next_weights_; // whose first rows the last accepted job loads
    std::array<int16_t, ita_tile_bytes> input_{}, weights_{};
    std::array<uint8_t, ita_group_bytes> loaded_{}; // the first rows of weights
    std::array<int32_t, ita_tile_bytes> sums_{};
    std::array<ItaRow, ita_tile> rows_{};
};

} // namespace tilewright
