// ITA as MemPool has it: units that compute one head of attention each, from one block of memory to another.
#pragma once

#include "machine/device.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace tilewright {

// One head: `block` holds weights, inputs and biases, q and k come from `inputs`, which may be another unit's block.
// Requantisations are those of Q, K, QK, V, AV and OW.
struct ItaHead {
    uint32_t rows;       // S
    uint32_t embedding;  // E
    uint32_t projection; // P
    std::array<uint8_t, 6> mult;
    std::array<uint8_t, 6> shift;
    std::array<int32_t, 6> add;

    uint32_t block_bytes() const;
    uint32_t query_at() const { return 3 * embedding * projection; }
    int64_t products() const; // of tiles
};
std::vector<int8_t> compute_ita_head(const ItaHead &head, std::span<const uint8_t> block,
                                     std::span<const uint8_t> inputs);

// Settings: units, product_cycles (for each product of two tiles) and drain_cycles (once a head).
class ItaUnits final : public Device {
  public:
    ItaUnits(Machine &machine, const std::string &name, const Settings &settings);
    Reply access(const Access &access) override;
    void happen(uint32_t tag) override;
    std::map<std::string, uint64_t> statistics() const override;

  private:
    struct Unit {
        std::array<uint32_t, 7> registers{};
        bool busy = false;
        bool done = false;
        uint32_t thread = 0;
        uint32_t transfer = 0;
        ItaHead head{};
    };

    void start(Unit &unit, const Access &access);
    bool read_head(Unit &unit);
    void describe(Unit &unit, const Access &access);

    std::vector<Unit> units_;
    int64_t product_cycles_, drain_cycles_;
    uint64_t heads_ = 0, busy_ = 0;
};

} // namespace tilewright
