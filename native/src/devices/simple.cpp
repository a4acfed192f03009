// Devices of a few lines: where characters go, where a program ends, where harts are started, plain registers.
#include "devices/kinds.h"
#include "machine/machine.h"

#include <array>

namespace tilewright {

namespace {

// A byte written anywhere in it is printed.
class Console final : public Device {
  public:
    Console(Machine &machine, const std::string &name, const Settings &) : Device(machine, name) {}
    Reply access(const Access &access) override {
        if (access.write)
            machine_.print(static_cast<char>(access.value));
        return {};
    }
};

// Registers that keep what is written; a write to one of them with its top bit set ends the program.
class SystemControl final : public Device {
  public:
    SystemControl(Machine &machine, const std::string &name, const Settings &settings)
        : Device(machine, name), exit_register_(settings.word("exit_register")) {}
    Reply access(const Access &access) override {
        if (access.write && access.offset == exit_register_ && (access.value >> 31) != 0)
            machine_.exit(access.value & 0x7fffffff, access.hart, access.pc, access.time);
        if (access.write)
            values_[access.offset] = access.value;
        return {.value = values_[access.offset]};
    }
    bool only_keeps(uint32_t) const override { return true; }

  private:
    uint32_t exit_register_;
    std::map<uint32_t, uint32_t> values_;
};

// Registers that keep what is written and do nothing else.
class Registers final : public Device {
  public:
    Registers(Machine &machine, const std::string &name, const Settings &) : Device(machine, name) {}
    Reply access(const Access &access) override {
        if (access.write)
            values_[access.offset] = access.value;
        return {.value = values_[access.offset]};
    }
    bool only_keeps(uint32_t) const override { return true; }

  private:
    std::map<uint32_t, uint32_t> values_;
};

// Boot addresses and fetch enable of a group of harts. The other registers (end of computation, priorities of the
// interconnect) keep what is written.
class ClusterControl final : public Device {
  public:
    ClusterControl(Machine &machine, const std::string &name, const Settings &settings)
        : Device(machine, name), first_(settings.word("first_hart")), count_(settings.word("harts")),
          start_cycles_(settings["start_cycles"]), boot_(count_, 0) {}

    Reply access(const Access &access) override {
        if (access.offset == fetch_enable) {
            if (access.write)
                enable(access);
            return {.value = enabled_};
        }
        if (access.offset >= boot_address && access.offset < boot_address + 4 * count_) {
            uint32_t &address = boot_[(access.offset - boot_address) / 4];
            if (access.write)
                address = access.value;
            return {.value = address};
        }
        if (access.write)
            others_[access.offset] = access.value;
        return {.value = others_[access.offset]};
    }

    bool only_keeps(uint32_t offset) const override { return offset != fetch_enable; }

  private:
    static constexpr uint32_t fetch_enable = 0x8, boot_address = 0x40;

    void enable(const Access &access) {
        Clock begun;
        machine_.checks().release(access.hart, begun);
        for (uint32_t i = 0; i < count_; ++i)
            if (((access.value & ~enabled_) >> i) & 1) {
                machine_.checks().acquire(machine_.harts()[first_ + i], begun);
                machine_.start(first_ + i, boot_[i], access.time + start_cycles_);
            }
        enabled_ |= access.value;
    }

    uint32_t first_;
    uint32_t count_;
    int64_t start_cycles_;
    std::vector<uint32_t> boot_;
    uint32_t enabled_ = 0;
    std::map<uint32_t, uint32_t> others_;
};

// Instruction caches of a group of harts: on, off, flush.
class CacheControl final : public Device {
  public:
    CacheControl(Machine &machine, const std::string &name, const Settings &settings)
        : Device(machine, name), group_(settings.word("group")) {
        machine_.enable_caches(group_, false);
    }
    Reply access(const Access &access) override {
        if (access.write && access.offset == 0)
            machine_.enable_caches(group_, access.value != 0);
        if (access.write && access.offset == 4)
            machine_.forget_code();
        return {};
    }

  private:
    uint32_t group_;
};

template <class Kind>
std::unique_ptr<Device> made(Machine &machine, const std::string &name, const Settings &settings) {
    return std::make_unique<Kind>(machine, name, settings);
}

} // namespace

std::unique_ptr<Device> make_simple(const std::string &kind, Machine &machine, const std::string &name,
                                    const Settings &settings) {
    if (kind == "console")
        return made<Console>(machine, name, settings);
    if (kind == "system_control")
        return made<SystemControl>(machine, name, settings);
    if (kind == "registers")
        return made<Registers>(machine, name, settings);
    if (kind == "cluster_control")
        return made<ClusterControl>(machine, name, settings);
    if (kind == "cache_control")
        return made<CacheControl>(machine, name, settings);
    return nullptr;
}

} // namespace tilewright
