/* Counting with a mutex, and the message that an owner leaves for the next one. */
#include "devices.h"

static volatile uint32_t counter;

void program(uint32_t core) {
    REGISTER(EVENTS + 0x08) = 1u << 17;
    barrier();
    for (uint32_t i = 0; i < 25; i++) {
        lock();
        uint32_t value = counter;
        idle(3);
        counter = value + 1;
        unlock();
    }
    barrier();
    if (core == 0) {
        results[0] = counter;
        (void)WAIT_FOR_EVENT(0xC4);
    }
    barrier();
    if (core == 0) {
        idle(100); /* core 1 waits by now */
        REGISTER(EVENTS + 0xC4) = 1234;
    } else if (core == 1) {
        results[1] = WAIT_FOR_EVENT(0xC4);
        REGISTER(EVENTS + 0xC4) = 77;
    }
    barrier();
    if (core == 2)
        results[2] = WAIT_FOR_EVENT(0xC4);
    barrier();
}
