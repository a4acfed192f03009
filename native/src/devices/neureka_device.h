// NEUREKA as cores see it: an engine with registers of two jobs.
#pragma once

#include "devices/hwpe.h"
#include "devices/neureka.h"

#include <array>
#include <cstdint>

namespace tilewright {

// Settings beside those of all engines: weight_memory (a name, which may be left out), all names of NeurekaTiming, and,
// where they differ from 0, the quirks by their names.
class NeurekaDevice final : public Hwpe<NeurekaJob, NeurekaRegisters, 2> {
  public:
    NeurekaDevice(Machine &machine, const std::string &name, const Settings &settings);
    std::map<std::string, uint64_t> statistics() const override;

  private:
    NeurekaJob decoded(const NeurekaRegisters &registers) const override { return decode_neureka_job(registers); }
    std::optional<JobFault> accept(const NeurekaJob &job) override;
    Transfer described(const NeurekaJob &job, uint32_t number) const override;
    int64_t begin(const NeurekaJob &job) override;
    void compute(const NeurekaJob &job) override;
    void forget() override { prefetch_ = {}; }
    NeurekaMemory memories() const;

    Memory *weights_;
    NeurekaTiming timing_;
    NeurekaQuirks quirks_;
    NeurekaPrefetch prefetch_;
    uint64_t multiplications_ = 0;
    std::array<uint64_t, neureka_phase_count> phases_{};
};

} // namespace tilewright
