// The values of ITA's jobs.
#include "devices/ita.h"

#include <algorithm>
#include <cstdlib>

namespace tilewright {

namespace {

constexpr uint32_t sum_bits = 26;

int32_t wrapped(int64_t sum) {
    constexpr uint32_t rest = 32 - sum_bits;
    return static_cast<int32_t>(static_cast<uint32_t>(sum) << rest) >> rest;
}

int32_t shifted(int32_t distance) { return std::min(distance, 31); }

int32_t bias_at(const uint8_t *bytes) {
    const uint32_t word = bytes[0] | static_cast<uint32_t>(bytes[1]) << 8 | static_cast<uint32_t>(bytes[2]) << 16;
    return static_cast<int32_t>(word << 8) >> 8;
}

} // namespace

int8_t ita_requantise(int64_t sum, const ItaScale &scale) {
    const int64_t product = sum * static_cast<int64_t>(scale.mult);
    const uint32_t shift = std::min(scale.shift, 63u);
    const int64_t rounded = shift == 0 ? product : (product >> shift) + (product >> (shift - 1) & 1);
    return static_cast<int8_t>(std::clamp<int64_t>(rounded + scale.add, -128, 127));
}

int8_t ita_activate(int8_t value, const ItaFunction &function) {
    const int64_t q = value;
    switch (function.kind) {
    case ItaActivation::gelu: {
        const int64_t t = std::min<int64_t>(std::abs(q), -function.b) + function.b;
        const int64_t curve = t * t + function.c;
        return ita_requantise(wrapped(q * ((q < 0 ? -curve : curve) + function.c)), function.scale);
    }
    case ItaActivation::relu:
        return ita_requantise(std::max<int64_t>(q, 0), function.scale);
    default:
        return value;
    }
}

void ItaRow::take(const int8_t *group) {
    const int32_t highest = std::max<int32_t>(top, *std::max_element(group, group + ita_group));
    sum >>= shifted(highest - top);
    for (uint32_t i = 0; i < ita_group; ++i)
        sum += 256u >> shifted(highest - group[i]);
    top = highest;
}

uint8_t ItaRow::weight(int32_t score, uint32_t inverse) const {
    return static_cast<uint8_t>(inverse >> shifted(top - score));
}

void ItaEngine::run(const ItaJob &job) {
    const Place place = place_of(job, computed_);
    if (place.step == ItaStep::scores && place.first_tile && place.first_inner)
        rows_ = {};
    load_input(job, place);
    load_weights(job);
    if (place.first_inner)
        sums_ = {};
    multiply();
    if (place.last_inner)
        finish(job, place);
    if (job.loads_next)
        std::copy_n(memory_.data() + job.next_weights, ita_group_bytes, loaded_.data());
    advance(job, computed_);
}

// Scores become weights on their way in.
void ItaEngine::load_input(const ItaJob &job, const Place &place) {
    const auto *bytes = reinterpret_cast<const int8_t *>(memory_.data() + job.input);
    if (place.step != ItaStep::mix) {
        std::copy_n(bytes, ita_tile_bytes, input_.data());
        return;
    }
    for (uint32_t row = 0; row < ita_tile; ++row) {
        const uint32_t inverse = rows_[row].inverse();
        for (uint32_t i = row * ita_tile; i < (row + 1) * ita_tile; ++i)
            input_[i] = rows_[row].weight(bytes[i], inverse);
    }
}

void ItaEngine::load_weights(const ItaJob &job) {
    const uint8_t *bytes = memory_.data() + job.weights;
    if (job.loads_first)
        std::copy_n(bytes, ita_group_bytes, loaded_.data());
    std::copy_n(reinterpret_cast<const int8_t *>(loaded_.data()), ita_group_bytes, weights_.data());
    std::copy_n(reinterpret_cast<const int8_t *>(bytes) + ita_group_bytes, ita_tile_bytes - ita_group_bytes,
                weights_.data() + ita_group_bytes);
}

void ItaEngine::multiply() {
    for (uint32_t row = 0; row < ita_tile; ++row) {
        const int16_t *left = input_.data() + row * ita_tile;
        for (uint32_t column = 0; column < ita_tile; ++column) {
            const int16_t *right = weights_.data() + column * ita_tile;
            int32_t sum = 0;
            for (uint32_t i = 0; i < ita_tile; ++i)
                sum += left[i] * right[i];
            int32_t &total = sums_[row * ita_tile + column];
            total = wrapped(total + sum);
        }
    }
}

void ItaEngine::finish(const ItaJob &job, const Place &place) {
    const ItaScale &scale = job.scales[place.step == ItaStep::product ? 0 : static_cast<size_t>(place.step)];
    const bool active = place.step == ItaStep::first || place.step == ItaStep::product;
    const uint8_t *bias = memory_.data() + job.bias;
    auto *results = reinterpret_cast<int8_t *>(memory_.data() + job.output);
    for (uint32_t row = 0; row < ita_tile; ++row) {
        std::array<int8_t, ita_tile> made;
        for (uint32_t column = 0; column < ita_tile; ++column) {
            int32_t sum = sums_[row * ita_tile + column];
            if (!job.without_bias)
                sum = wrapped(sum + bias_at(bias + 3 * (job.bias_along_rows ? row : column)));
            made[column] = ita_requantise(sum, scale);
            if (active)
                made[column] = ita_activate(made[column], job.function);
        }
        if (place.step == ItaStep::scores)
            for (uint32_t group = 0; group < ita_tile; group += ita_group)
                rows_[row].take(made.data() + group);
        std::copy(made.begin(), made.end(), results + row * ita_tile);
    }
}

} // namespace tilewright
