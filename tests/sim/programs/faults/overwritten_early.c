/* A core overwrites what another one has read, which nobody has told it. */
#include "chip.h"

#define SIZE 64
IN_L1 static volatile uint8_t buffer[SIZE];

void program(uint32_t core) {
    set_mask(BARRIER_EVENT);
    if (core == 0)
        buffer[8] = 1;
    barrier();
    if (core == 0)
        result = buffer[8]; /* OTHER */
    else
        idle(3000);
    if (!FAULTY)
        barrier();
    if (core == 1)
        buffer[8] = 2; /* FAULT */
    barrier();
}
