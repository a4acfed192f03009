// Python's view of profiles, traces and breakpoints.
#pragma once

#include "machine/machine.h"

#include <nanobind/nanobind.h>

namespace tilewright {

void bind_observation(nanobind::class_<Machine> &machine);

} // namespace tilewright
