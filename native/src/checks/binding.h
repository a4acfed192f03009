#pragma once

#include "machine/machine.h"

#include <nanobind/nanobind.h>

namespace tilewright {

void bind_checks(nanobind::class_<Machine> &machine);

} // namespace tilewright
