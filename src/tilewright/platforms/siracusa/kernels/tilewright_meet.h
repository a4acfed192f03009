/* Cores that have a kernel in parts meet inside of it, without the one that drives. */
#ifndef TILEWRIGHT_MEET_H
#define TILEWRIGHT_MEET_H

#include "tilewright_chip.h"

/* Waits until all parts are here, at a barrier of their own: each tells it who they are, all the same. */
static inline void tw_meet_parts(int parts) {
    TW_REGISTER(TW_EVENTS + 0x220) = (1u << parts) - 1;
    TW_REGISTER(TW_EVENTS + 0x22C) = (1u << parts) - 1;
    __asm__ volatile("" ::: "memory");
    (void)TW_WAIT_AT(0x23C);
}

#endif
