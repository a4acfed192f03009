/* The cluster's timer: counting, comparing, restarting, 64 bits. */
#include "devices.h"

enum { enable = 1, reset = 2, event = 4, restart = 16, once = 32, prescaler = 64 };

void program(uint32_t core) {
    enable_caches();
    if (core != 0)
        return;
    set_mask(1u << 10 | 1u << 11);
    for (int warm = 0; warm < 2; warm++) {
        REGISTER(TIMER) = enable | reset;
        uint32_t first = REGISTER(TIMER + 8), since = cycles();
        idle(50);
        uint32_t second = REGISTER(TIMER + 8), until = cycles();
        results[0] = second - first - (until - since);
    }
    REGISTER(TIMER) = 0;
    results[1] = REGISTER(TIMER + 8);
    idle(20);
    results[2] = REGISTER(TIMER + 8) - results[1];
    REGISTER(TIMER + 8) = 123;
    results[3] = REGISTER(TIMER + 8);

    /* Compare: one event a long time after the start, then none. */
    REGISTER(TIMER + 0x14) = 1000;
    uint32_t since = cycles();
    REGISTER(TIMER + 4) = enable | reset | event | once;
    results[4] = wait_for_event();
    results[5] = cycles() - since;
    results[6] = REGISTER(TIMER + 4) & enable;

    /* An event every 300 cycles. */
    REGISTER(TIMER + 0x10) = 300;
    REGISTER(TIMER) = enable | reset | event | restart;
    for (int i = 0; i < 6; i++) {
        results[8 + i] = wait_for_event();
        results[16 + i] = cycles();
    }
    REGISTER(TIMER) = 0;

    /* The prescaler: every 4 cycles. */
    REGISTER(TIMER + 0x20) = 1;
    REGISTER(TIMER) = prescaler | 3u << 8;
    REGISTER(TIMER + 0x18) = 1;
    idle(400);
    results[24] = REGISTER(TIMER + 8);
    REGISTER(TIMER) = 0;

    /* 64 bits: the low half runs over into the high one. */
    REGISTER(TIMER + 8) = 0xfffffff0u;
    REGISTER(TIMER + 12) = 0;
    REGISTER(TIMER) = 1u << 31;
    REGISTER(TIMER + 8) = 0xfffffff0u;
    REGISTER(TIMER + 12) = 6;
    REGISTER(TIMER) = 1u << 31 | enable;
    idle(50);
    results[25] = REGISTER(TIMER + 12);
    results[26] = REGISTER(TIMER + 8) < 1000;
    REGISTER(TIMER) = 0;
}
