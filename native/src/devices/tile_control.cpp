// Registers of a machine of tiles: the end of the program, wake-ups of harts by number, tile or group, and what it has.
#include "devices/kinds.h"
#include "machine/machine.h"

#include <algorithm>
#include <array>

namespace tilewright {

namespace {

// Settings: memory (whose addresses it tells), harts_per_tile, tiles_per_group, boot (where harts start when they are first
// woken), wake_cycles (from a write to the first instruction behind `wfi`).
class TileControl final : public Device {
  public:
    TileControl(Machine &machine, const std::string &name, const Settings &settings)
        : Device(machine, name), memory_(machine.needed_memory(settings.text("memory"))),
          first_(settings.word("first_hart")), count_(settings.word("harts")),
          harts_per_tile_(settings.word("harts_per_tile")),
          harts_per_group_(harts_per_tile_ * settings.word("tiles_per_group")), boot_(settings.word("boot")),
          wake_cycles_(settings["wake_cycles"]) {}

    Reply access(const Access &access) override {
        if (access.offset % 4 != 0 || access.offset >= end_of_registers)
            return {.refused = true};
        if (!access.write)
            return {.value = read(access.offset)};
        write(access);
        return {};
    }

    std::map<std::string, uint64_t> statistics() const override { return {{"wake_ups", wake_ups_}}; }

  private:
    enum : uint32_t {
        end_of_computation = 0x00,
        wake_up = 0x04,
        wake_up_tiles = 0x08, // of eight groups
        wake_up_groups = 0x28,
        wake_stride = 0x2c,
        wake_offset = 0x30,
        memory_start = 0x34,
        memory_end = 0x38,
        number_of_harts = 0x3c,
        cache_flush = 0x44,
        cached_regions = 0x48, // four starts, four ends
        end_of_registers = 0x68,
    };

    uint32_t read(uint32_t offset) const {
        switch (offset) {
        case memory_start:
            return memory_.base;
        case memory_end:
            return memory_.base + memory_.size;
        case number_of_harts:
            return count_;
        default:
            return values_[offset / 4];
        }
    }

    void write(const Access &access) {
        values_[access.offset / 4] = access.value;
        if (access.offset == end_of_computation && (access.value & 1) != 0)
            machine_.exit(access.value >> 1, access.hart, access.pc, access.time);
        else if (access.offset == wake_up)
            wake(access, [value = access.value, this](uint32_t hart) { return value >= count_ || hart == value; });
        else if (access.offset >= wake_up_tiles && access.offset < wake_up_groups)
            wake(access, [&access, group = (access.offset - wake_up_tiles) / 4, this](uint32_t hart) {
                return hart / harts_per_group_ == group &&
                       (access.value >> hart % harts_per_group_ / harts_per_tile_ & 1) != 0;
            });
        else if (access.offset == wake_up_groups)
            wake(access, [&access, this](uint32_t hart) { return (access.value >> hart / harts_per_group_ & 1) != 0; });
        else if (access.offset == cache_flush && access.value != 0)
            machine_.forget_code();
    }

    // Harts wake in order of their numbers, as they are in the hardware.
    template <class Meant> void wake(const Access &access, Meant meant) {
        Clock begun;
        machine_.checks().release(access.hart, begun);
        const uint32_t stride = std::max(values_[wake_stride / 4], 1u), offset = values_[wake_offset / 4];
        for (uint32_t i = offset; i < count_; i += stride)
            if (meant(i)) {
                Hart &hart = machine_.harts()[first_ + i];
                machine_.checks().acquire(hart, begun);
                if (hart.state == HartState::off)
                    machine_.start(first_ + i, boot_, access.time + wake_cycles_);
                else
                    machine_.pulse(hart, access.time + wake_cycles_);
                ++wake_ups_;
            }
    }

    Memory &memory_;
    uint32_t first_, count_, harts_per_tile_, harts_per_group_;
    uint32_t boot_;
    int64_t wake_cycles_;
    std::array<uint32_t, end_of_registers / 4> values_{};
    uint64_t wake_ups_ = 0;
};

} // namespace

std::unique_ptr<Device> make_tile_control(Machine &machine, const std::string &name, const Settings &settings) {
    return std::make_unique<TileControl>(machine, name, settings);
}

} // namespace tilewright
