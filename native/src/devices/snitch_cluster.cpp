#include "devices/snitch_cluster.h"

#include "devices/snitch_core.h"

namespace tilewright {

namespace {

constexpr uint32_t cluster_line = 19, software_line = 3;

void raise(Machine &machine, uint32_t harts, uint32_t line, bool set, int64_t time) {
    for (Hart &hart : machine.harts())
        if (hart.id < 32 && (harts >> hart.id & 1) != 0) {
            const uint32_t lines = set ? hart.interrupt | 1u << line : hart.interrupt & ~(1u << line);
            machine.set_interrupts(hart, lines, time);
        }
}

// One word whose bits are the software interrupts of harts.
class Clint final : public Device {
  public:
    Clint(Machine &machine, const std::string &name) : Device(machine, name) {}
    Reply access(const Access &access) override {
        if (access.offset != 0)
            return {};
        if (access.write) {
            raise(machine_, access.value & ~bits_, software_line, true, access.time);
            raise(machine_, bits_ & ~access.value, software_line, false, access.time);
            bits_ = access.value;
        }
        return {.value = bits_};
    }

  private:
    uint32_t bits_ = 0;
};

} // namespace

std::unique_ptr<Device> make_snitch_clint(Machine &machine, const std::string &name, const Settings &) {
    return std::make_unique<Clint>(machine, name);
}

SnitchCluster::SnitchCluster(Machine &machine, const std::string &name, const Settings &settings)
    : Device(machine, name), count_(static_cast<uint32_t>(machine.harts().size())),
      wake_cycles_(settings["wake_cycles"]), clear_place_(settings.word("interrupt_register") + 8) {
    for (Hart &hart : machine.harts())
        if (auto *core = dynamic_cast<SnitchCore *>(hart.extension.get()))
            core->cluster = this;
}

// Registers are 64 bits apart; but for those below they keep what is written. Performance counters count nothing.
Reply SnitchCluster::access(const Access &access) {
    if (access.write && access.offset == clear_place_ - 8)
        raise(machine_, access.value, cluster_line, true, access.time);
    else if (access.write && access.offset == clear_place_)
        raise(machine_, access.value, cluster_line, false, access.time);
    else if (access.write)
        values_[access.offset] = access.value;
    else if (access.offset == clear_place_ + 8) { // a read of the barrier
        arrived_.push_back(&access.hart);
        machine_.checks().release(access.hart, met_);
        open(access.time);
        return {.asleep = true};
    }
    return {.value = values_[access.offset]};
}

Outcome SnitchCluster::arrive(Hart &hart, const Op *op, int64_t time) {
    hart.state = HartState::asleep;
    hart.elw_register = op->rd;
    arrived_.push_back(&hart);
    machine_.checks().release(hart, met_);
    open(time);
    return Outcome::asleep;
}

void SnitchCluster::open(int64_t time) {
    if (arrived_.size() == count_)
        machine_.schedule(time, *this, 0);
}

void SnitchCluster::happen(uint32_t) {
    const int64_t now = machine_.now();
    for (Hart *hart : arrived_) {
        machine_.checks().acquire(*hart, met_);
        machine_.wake(*hart, now + wake_cycles_, 0);
    }
    arrived_.clear();
    met_.clear();
}

} // namespace tilewright
