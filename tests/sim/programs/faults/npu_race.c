/* Reads the output of the accelerator before its job has ended. */
#include "chip.h"
#include "npu.h"

void program(uint32_t core) {
    if (core != 0)
        return;
    npu_fill(0);
    set_mask(BARRIER_EVENT | NPU_EVENT);
    npu_start();
    if (!FAULTY)
        (void)wait_for_event();
    result = npu_output[0]; /* FAULT */
    if (FAULTY)
        (void)wait_for_event();
}
