// Python's view of ITA's jobs.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewright {

void bind_ita(nanobind::module_ &module);

} // namespace tilewright
