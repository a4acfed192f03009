// The loop for harts with a scoreboard.
#include "machine/interpreter.h"

namespace tilewright {

template Stop Machine::run_harts<false, true>(int64_t until);
template Stop Machine::run_harts<true, true>(int64_t until);

} // namespace tilewright
