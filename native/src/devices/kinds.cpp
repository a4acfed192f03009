#include "devices/kinds.h"

#include "devices/event_unit.h"
#include "devices/ita_device.h"
#include "devices/ita_units.h"
#include "devices/mchan.h"
#include "devices/neureka_device.h"
#include "devices/snitch_cluster.h"
#include "devices/snitch_core.h"
#include "devices/udma_hyper.h"
#include "machine/machine.h"

namespace tilewright {

std::unique_ptr<Device> make_device(const std::string &kind, Machine &machine, const std::string &name,
                                    const Settings &settings) {
    if (auto device = make_simple(kind, machine, name, settings))
        return device;
    if (kind == "timer")
        return make_timer(machine, name, settings);
    if (kind == "tile_control")
        return make_tile_control(machine, name, settings);
    if (kind == "tile_dma")
        return make_tile_dma(machine, name, settings);
    if (kind == "event_unit")
        return std::make_unique<EventUnit>(machine, name, settings);
    if (kind == "mchan")
        return std::make_unique<Mchan>(machine, name, settings);
    if (kind == "udma_hyper")
        return std::make_unique<UdmaHyper>(machine, name, settings);
    if (auto device = make_snitch(kind, machine, name, settings))
        return device;
    if (kind == "snitch_clint")
        return make_snitch_clint(machine, name, settings);
    if (kind == "neureka")
        return std::make_unique<NeurekaDevice>(machine, name, settings);
    if (kind == "ita")
        return std::make_unique<ItaDevice>(machine, name, settings);
    if (kind == "ita_units")
        return std::make_unique<ItaUnits>(machine, name, settings);
    throw std::invalid_argument("there is no kind of device '" + kind + "'");
}

Device &Machine::add_device(const std::string &kind, const std::string &name, uint32_t base, uint32_t size,
                            std::map<std::string, Setting> settings) {
    const Settings given(name, std::move(settings));
    devices_.push_back(make_device(kind, *this, name, given));
    given.finish({"first_hart", "harts", "group"});
    add_window(name, name, base, size, 0);
    return *devices_.back();
}

} // namespace tilewright
