#pragma once

#include <nanobind/nanobind.h>

namespace tilewright::schedule {

void bind_schedule(nanobind::module_ &module);

} // namespace tilewright::schedule
