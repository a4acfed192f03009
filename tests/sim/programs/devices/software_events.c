/* Cores that wake each other with software events. */
#include "devices.h"

enum { ping = 3, pong = 5 };

void program(uint32_t core) {
    if (core == 0) {
        set_mask(1u << pong);
        idle(100); /* core 1 sleeps by now */
        results[0] = REGISTER(EVENTS_OF_ALL + 0x40 + 0x18);
        REGISTER(EVENTS + 0x100 + 4 * ping) = 2;
        results[1] = wait_for_event();
        results[2] = REGISTER(EVENTS + 0x1c) & 0xff;
        /* To the cores set before, and wait for the answer, which clears. */
        REGISTER(EVENTS + 0x2c) = 2;
        results[3] = WAIT_FOR_EVENT(0x180 + 4 * ping);
        results[4] = REGISTER(EVENTS + 0x1c) & 0xff;
        /* To all, which this core is one of. */
        set_mask(1u << 7);
        REGISTER(EVENTS + 0x2c) = 0;
        results[5] = WAIT_FOR_EVENT(0x140 + 4 * 7);
        results[6] = REGISTER(EVENTS + 0x1c) & 0xff;
        REGISTER(EVENTS + 0x28) = 0xff;
    } else if (core == 1) {
        set_mask(1u << ping);
        for (int i = 0; i < 2; i++) {
            results[8 + i] = wait_for_event();
            REGISTER(EVENTS + 0x100 + 4 * pong) = 1;
        }
        set_mask(1u << 7);
        results[10] = WAIT_FOR_EVENT(0x3c);
    }
}
