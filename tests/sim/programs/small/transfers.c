/* Two cores each bring half of some bytes to L1 and add them up. */
#include "chip.h"

#define HALF 1024u
static IN_L1 uint8_t near[2 * HALF];
static IN_L2 uint8_t far[2 * HALF];
static volatile uint32_t sums[2];

__attribute__((noinline)) uint32_t sum_of_half(const uint8_t *bytes) { return sum(bytes, HALF); }

void program(uint32_t core) {
    if (core == 0)
        for (uint32_t i = 0; i < 2 * HALF; i++)
            far[i] = (uint8_t)i;
    barrier();
    dma_wait(dma(near + core * HALF, far + core * HALF, HALF, to_l1));
    sums[core] = sum_of_half(near + core * HALF);
    barrier();
    if (core == 0)
        result = (sums[0] + sums[1]) / 8192;
}
