// Registers that the cores of a Snitch cluster share, their interrupts, and the barrier at which all of them meet.
#pragma once

#include "machine/machine.h"

namespace tilewright {

class SnitchCluster final : public Device {
  public:
    SnitchCluster(Machine &machine, const std::string &name, const Settings &settings);
    Reply access(const Access &access) override;
    void happen(uint32_t tag) override;
    // A hart comes to the barrier and sleeps there until all have come.
    Outcome arrive(Hart &hart, const Op *op, int64_t time);

  private:
    void open(int64_t time);

    uint32_t count_;
    int64_t wake_cycles_;
    uint32_t clear_place_;
    std::vector<Hart *> arrived_;
    Clock met_;
    std::map<uint32_t, uint32_t> values_;
};

// Interrupts between harts: a bit for each.
std::unique_ptr<Device> make_snitch_clint(Machine &machine, const std::string &name, const Settings &settings);

} // namespace tilewright
