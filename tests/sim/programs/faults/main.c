/* Runs `program` on CORES cores of the cluster, and exits with its result. */
#include "chip.h"

uint32_t result;
/* What a host looks for in networks. */
const void *tw_inputs[1];
void *tw_outputs[1];
uint32_t tw_cycles;
__attribute__((noinline)) void tw_ready(void) { __asm__ volatile("" ::: "memory"); }

static volatile uint32_t barrier_ready, finished;

int main(void) {
    tw_ready();
    for (uint32_t i = 0; i < CORES; i++)
        REGISTER(CLUSTER_CONTROL + 0x40 + 4 * i) = (uint32_t)_start;
    REGISTER(CLUSTER_CONTROL + 8) = (1u << CORES) - 1;
    while (!finished)
        ;
    return (int)(result & 0x7f);
}

void tw_cluster_main(uint32_t core) {
    if (core == 0) {
        REGISTER(EVENTS + 0x200) = (1u << CORES) - 1;
        REGISTER(EVENTS + 0x20C) = (1u << CORES) - 1;
        barrier_ready = 1;
    }
    set_mask(BARRIER_EVENT | DMA_EVENT);
    while (!barrier_ready)
        ;
    program(core);
    set_mask(BARRIER_EVENT);
    barrier();
    if (core == 0)
        finished = 1;
}
