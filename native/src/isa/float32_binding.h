#pragma once

#include <nanobind/nanobind.h>

namespace tilewright {

void bind_float32(nanobind::module_ &module);

} // namespace tilewright
