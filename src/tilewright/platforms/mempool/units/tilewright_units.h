/* Units of ITA, each of which computes a head of attention from a block of memory. They have no queues: whoever starts one
 * waits until it is idle. The platform says where their registers are (TW_ITA). */
#ifndef TILEWRIGHT_UNITS_H
#define TILEWRIGHT_UNITS_H

#include <stdint.h>

#define TW_ITA_UNITS 4
#define TW_ITA_REGISTER(unit, number) (*(volatile uint32_t *)(TW_ITA + 0x30u * (uint32_t)(unit) + 4u * (number)))
#define TW_ITA_START 1u
#define TW_ITA_BUSY 2u

/* Behind it all units are idle; whoever starts work has waited for what was started before. */
static inline void tw_await_ita(int recent) {
    for (int unit = 0; recent && unit < TW_ITA_UNITS; unit++)
        while (TW_ITA_REGISTER(unit, 0) & TW_ITA_BUSY)
            ;
    __asm__ volatile("fence" ::: "memory");
}

#endif
