// The loop for harts whose pipelines stall for the instruction right behind.
#include "machine/interpreter.h"

namespace tilewright {

template Stop Machine::run_harts<false, false>(int64_t until);
template Stop Machine::run_harts<true, false>(int64_t until);

} // namespace tilewright
