/* Registers of the event unit that one core reads and writes on its own. */
#include "devices.h"

void program(uint32_t core) {
    if (core != 0)
        return;
    uint32_t before = REGISTER(EVENTS);
    REGISTER(EVENTS) = 0x0f;
    REGISTER(EVENTS + 0x04) = 0x05;
    results[0] = REGISTER(EVENTS);
    REGISTER(EVENTS + 0x08) = 0x30;
    results[1] = REGISTER(EVENTS);
    REGISTER(EVENTS + 0x0c) = 0xff00;
    REGISTER(EVENTS + 0x10) = 0x0f00;
    REGISTER(EVENTS + 0x14) = 0x1;
    results[2] = REGISTER(EVENTS + 0x0c);
    REGISTER(EVENTS + 0x0c) = 0;

    /* Software events 4 and 6 to this core; the mask has 4 only. */
    REGISTER(EVENTS + 0x100 + 4 * 4) = 1;
    REGISTER(EVENTS + 0x100 + 4 * 6) = 1;
    results[3] = REGISTER(EVENTS + 0x1c);
    results[4] = REGISTER(EVENTS + 0x20);
    results[5] = WAIT_FOR_EVENT(0x38); /* leaves the event */
    results[6] = REGISTER(EVENTS + 0x1c);
    results[7] = wait_for_event(); /* clears it */
    results[8] = REGISTER(EVENTS + 0x1c);
    REGISTER(EVENTS + 0x28) = 1u << 6;
    results[9] = REGISTER(EVENTS + 0x1c);

    /* The same registers as all see them. */
    results[10] = REGISTER(EVENTS_OF_ALL);
    REGISTER(EVENTS_OF_ALL) = 0xabc;
    results[11] = REGISTER(EVENTS);
    results[12] = REGISTER(EVENTS_OF_ALL + 0x18);
    REGISTER(EVENTS_OF_ALL + 0x600 + 4 * 2) = 1;
    results[13] = REGISTER(EVENTS + 0x1c);
    REGISTER(EVENTS + 0x28) = ~0u;
    REGISTER(EVENTS) = before;
}
