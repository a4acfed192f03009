// ITA as cores of a cluster see it: an engine with registers of four jobs, each a product of two tiles.
#pragma once

#include "devices/hwpe.h"
#include "devices/ita.h"

#include <cstdint>

namespace tilewright {

// Settings beside those of all engines: all names of ItaTiming.
class ItaDevice final : public Hwpe<ItaJob, ItaRegisters, 4> {
  public:
    ItaDevice(Machine &machine, const std::string &name, const Settings &settings);
    std::map<std::string, uint64_t> statistics() const override;

  private:
    ItaJob decoded(const ItaRegisters &registers) const override { return decode_ita_job(registers); }
    std::optional<JobFault> accept(const ItaJob &job) override;
    Transfer described(const ItaJob &job, uint32_t number) const override;
    int64_t begin(const ItaJob &job) override;
    void compute(const ItaJob &job) override { engine_.run(job); }
    void forget() override { engine_.clear(); }

    ItaTiming timing_;
    ItaEngine engine_;
    uint64_t accesses_ = 0;
};

} // namespace tilewright
