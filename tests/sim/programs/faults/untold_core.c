/* A core reads what another one wrote, long after it did. */
#include "chip.h"

#define SIZE 64
IN_L1 static volatile uint8_t buffer[SIZE];

static __attribute__((noinline)) void fill(void) {
    for (uint32_t i = 0; i < SIZE; i++)
        buffer[i] = 1; /* OTHER */
}

void program(uint32_t core) {
    set_mask(BARRIER_EVENT);
    if (core == 0)
        fill();
    else
        idle(3000);
    if (!FAULTY)
        barrier();
    if (core == 1)
        result = buffer[8]; /* FAULT */
    barrier();
}
