/* A master hands functions and arguments to a team; more of them than the queue holds. */
#include "devices.h"

typedef void task(uint32_t core, uint32_t argument);

static void add(uint32_t core, uint32_t argument) { results[core] += argument; }
static void stop(uint32_t core, uint32_t argument) { results[32 + core] = argument; }

static void fork(task *function, uint32_t argument) {
    REGISTER(EVENTS + 0x80) = (uint32_t)function;
    REGISTER(EVENTS + 0x80) = argument;
}

void program(uint32_t core) {
    REGISTER(EVENTS + 0x08) = 1u << 18;
    if (core == 0) {
        REGISTER(EVENTS + 0x84) = ALL_CORES;
        results[64] = REGISTER(EVENTS + 0x84);
        for (uint32_t i = 1; i <= 10; i++)
            fork(add, i);
        REGISTER(EVENTS + 0x84) = ALL_CORES & ~4u;
        fork(add, 1000); /* not for core 2 */
        REGISTER(EVENTS + 0x84) = ALL_CORES;
        idle(300); /* the team sleeps by now */
        fork(stop, 99);
    } else {
        while (results[32 + core] == 0) {
            task *function = (task *)WAIT_FOR_EVENT(0x80);
            uint32_t argument = WAIT_FOR_EVENT(0x80);
            function(core, argument);
        }
    }
    barrier();
}
