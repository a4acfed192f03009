/* Cores that have a kernel in parts meet inside of it. */
#ifndef TILEWRIGHT_MEET_H
#define TILEWRIGHT_MEET_H

#include "tilewright_chip.h"

/* Waits until all parts are here, at a barrier without the one that drives: each tells it who they are, all the same. */
static inline void tw_meet_parts(int parts) {
    TW_REGISTER(TW_EVENTS + 0x220) = (1u << parts) - 1;
    TW_REGISTER(TW_EVENTS + 0x22C) = (1u << parts) - 1;
    __asm__ volatile("" ::: "memory");
    (void)TW_WAIT_AT(0x23C);
}

/* Another barrier, for which the one that drives does not wait: it opens it when what all parts need is there. */
static inline void tw_opened_by_driver(int parts) {
    TW_REGISTER(TW_EVENTS + 0x240) = 1u << TW_CORES_OF_CLUSTER | ((1u << parts) - 1);
    TW_REGISTER(TW_EVENTS + 0x24C) = (1u << parts) - 1;
    __asm__ volatile("" ::: "memory");
}
static inline void tw_meet_opened(int parts) {
    tw_opened_by_driver(parts);
    (void)TW_WAIT_AT(0x25C);
}
static inline void tw_open(int parts) {
    tw_opened_by_driver(parts);
    TW_REGISTER(TW_EVENTS + 0x254) = 0;
}

#endif
