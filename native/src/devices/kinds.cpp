#include "devices/kinds.h"

#include "machine/machine.h"

namespace tilewright {

std::unique_ptr<Device> make_device(const std::string &kind, Machine &machine, const std::string &name,
                                    const Settings &settings) {
    if (auto device = make_simple(kind, machine, name, settings))
        return device;
    throw std::invalid_argument("there is no kind of device '" + kind + "'");
}

Device &Machine::add_device(const std::string &kind, const std::string &name, uint32_t base, uint32_t size,
                            std::map<std::string, int64_t> settings) {
    devices_.push_back(make_device(kind, *this, name, Settings(name, std::move(settings))));
    add_range(*devices_.back(), base, size);
    return *devices_.back();
}

} // namespace tilewright
