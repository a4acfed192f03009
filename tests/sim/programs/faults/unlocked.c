/* Two cores count together, one of them without the mutex. */
#include "chip.h"

IN_L1 static volatile uint8_t counters[64];

void program(uint32_t core) {
    set_mask(BARRIER_EVENT);
    if (core == 0)
        counters[0] = 0;
    barrier();
    set_mask(1u << 17);
    idle(core * 3000);
    if (!FAULTY || core == 0)
        lock();
    counters[0]++; /* FAULT */
    if (!FAULTY || core == 0)
        unlock();
}
