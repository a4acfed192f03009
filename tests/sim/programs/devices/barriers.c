/* Barriers of some cores, of all, and ones that trigger others than those that arrive. */
#include "devices.h"

#define BARRIER(number) (EVENTS + 0x200 + 0x20 * (number))

static volatile uint32_t phase[CORES];

void program(uint32_t core) {
    if (core == 0) {
        REGISTER(BARRIER(8)) = 6;
        REGISTER(BARRIER(8) + 0xc) = 6;
        REGISTER(BARRIER(3)) = 2;
        REGISTER(BARRIER(3) + 0xc) = 1;
        results[0] = REGISTER(BARRIER(8));
        results[1] = REGISTER(BARRIER(8) + 0xc);
    }
    for (uint32_t i = 0; i < 20; i++) {
        phase[core] = i;
        idle(core * 7 + i % 3);
        barrier();
        uint32_t together = 1;
        for (uint32_t other = 0; other < CORES; other++)
            together &= phase[other] == i;
        results[16 + core] += together;
        barrier();
    }
    /* Cores 1 and 2 meet without the others. */
    if (core == 1 || core == 2) {
        idle(core == 1 ? 200 : 0);
        if (core == 1)
            results[2] = REGISTER(BARRIER(8) + 4);
        results[4 + core] = WAIT_FOR_EVENT(0x200 + 0x20 * 8 + 0x1c);
    }
    barrier();
    /* Core 1 arrives without waiting, which wakes core 0. */
    if (core == 1)
        REGISTER(BARRIER(3) + 0x10) = 2;
    if (core == 0)
        results[3] = wait_for_event();
    barrier();
}
