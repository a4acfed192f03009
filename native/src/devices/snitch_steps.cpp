// What is the same in each turn of a loop that a Snitch core's sequencer repeats, found once. How steps are executed is
// in snitch_sequencer.cpp.
#include "devices/snitch_core.h"

namespace tilewright {

SnitchCore::Way SnitchCore::way_of(uint16_t code) {
    return code == op_x_fmadd_d        ? Way::multiply_add
           : code == op_x_vfmac_s      ? Way::multiply_add_singles
           : code == op_x_vfdotpex_s_h ? Way::dot_products
                                       : Way::call;
}

SnitchCore::Step SnitchCore::step_of(const Entry &entry) const {
    const auto place = [&entry](uint32_t where) { return static_cast<uint8_t>(entry.places >> where & 0xff); };
    Step made;
    made.first = place(first_place);
    made.second = place(second_place);
    made.third = place(third_place);
    made.target = place(target_place);
    made.target_place = static_cast<uint8_t>(target_place_of(made.target));
    made.latency = entry.latency;
    made.way = way_of(entry.op->code);
    made.to_stream = is_stream(made.target);
    made.compute = entry.row->compute_usual;
    find_sources(made);
    return made;
}

void SnitchCore::find_sources(Step &step) const {
    const auto source = [this](uint32_t number) {
        return (reading_ >> number & 1) != 0 ? streams_[number].get() : nullptr;
    };
    step.streams = {source(step.first), source(step.second), source(step.third)};
}

void SnitchCore::find_steps(const Loop &loop) {
    if (known_setup_ != loop.setup) {
        known_setup_ = loop.setup;
        known_steps_ = 0;
        const uint64_t count = innermost_->end - at_;
        bool usual = innermost_->stagger == 0 && count <= body_.size();
        for (uint64_t i = 0; usual && i < count; ++i) {
            const Entry &each = entry(at_ + i);
            usual = each.usual && (each.used >> first_place & each.used >> target_place & 1) != 0;
            if (usual) // no loop in it, for one
                body_[i] = step_of(each);
        }
        known_steps_ = usual ? static_cast<uint32_t>(count) : 0;
    }
    steps_ = is_usual() ? known_steps_ : 0;
    step_ = body_.data();
    steps_end_ = step_ + steps_;
    turns_ = innermost_->iterations - loop.iteration;
    inexact_ = (flags() & float_flag::inexact) != 0;
    are_sums_ = steps_ != 0 && are_sums();
    if (are_sums_) {
        sum_first_ = body_[0].streams[0];
        sum_second_ = body_[0].streams[1];
    }
}

bool SnitchCore::are_sums() const {
    const Step &first = body_[0];
    return std::all_of(body_.begin(), body_.begin() + steps_, [&first](const Step &step) {
        return step.way != Way::call && step.way == first.way && step.streams == first.streams &&
               step.streams[0] != nullptr && step.streams[1] != nullptr && step.streams[0] != step.streams[1] &&
               step.third == step.target && !step.to_stream;
    });
}

const Op *SnitchCore::op_of(const Step &step) const {
    return entry(running_.back().setup + 1 + static_cast<uint64_t>(&step - body_.data())).op;
}

uint64_t SnitchCore::compute_step(const Step &step, uint64_t a, uint64_t b, uint64_t c) {
    const FloatResult result = step.compute(a, b, c, flags());
    hart_.fcsr |= result.flags;
    inexact_ = (flags() & float_flag::inexact) != 0;
    if (result.unboxed) [[unlikely]]
        tell_unboxed(op_of(step));
    return result.value;
}

void SnitchCore::end_sums() {
    if (!sums_)
        return;
    sums_ = false;
    look_at_stream(body_[0].first);
    look_at_stream(body_[0].second);
}

} // namespace tilewright
