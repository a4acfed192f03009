#pragma once

#include <nanobind/nanobind.h>

namespace tilewright {

void bind_table(nanobind::module_ &module);

} // namespace tilewright
