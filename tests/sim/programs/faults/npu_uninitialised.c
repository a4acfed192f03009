/* The accelerator uses input that nobody wrote. */
#include "chip.h"
#include "npu.h"

void program(uint32_t core) {
    if (core != 0)
        return;
    npu_fill(FAULTY);
    set_mask(BARRIER_EVENT | NPU_EVENT);
    npu_start();
    (void)wait_for_event();
    result = npu_output[0];
}
