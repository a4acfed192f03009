// All kinds of devices, by the name that a description gives them.
#pragma once

#include "machine/device.h"

#include <memory>
#include <string>

namespace tilewright {

// Null where the kind is not one of theirs.
std::unique_ptr<Device> make_simple(const std::string &kind, Machine &machine, const std::string &name,
                                    const Settings &settings);

std::unique_ptr<Device> make_tile_control(Machine &machine, const std::string &name, const Settings &settings);
std::unique_ptr<Device> make_tile_dma(Machine &machine, const std::string &name, const Settings &settings);
std::unique_ptr<Device> make_timer(Machine &machine, const std::string &name, const Settings &settings);

std::unique_ptr<Device> make_device(const std::string &kind, Machine &machine, const std::string &name,
                                    const Settings &settings);

} // namespace tilewright
