#pragma once

#include <nanobind/nanobind.h>

namespace tilewright {

void bind_neureka(nanobind::module_ &module);

} // namespace tilewright
