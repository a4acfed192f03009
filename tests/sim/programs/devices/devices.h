/* What the programs for single devices share: where they leave results, and registers that no other program needs. */
#ifndef DEVICES_H
#define DEVICES_H
#include "chip.h"

#define EVENTS_OF_ALL 0x10200800u
#define TIMER 0x10200400u
#define UDMA 0x1A102000u
#define ALL_CORES ((1u << CORES) - 1)

extern volatile uint32_t results[256];

static inline void enable_caches(void) { REGISTER(0x10201400) = ~0u; }

static inline uint32_t cycles(void) {
    uint32_t value;
    __asm__ volatile("csrr %0, mcycle" : "=r"(value)::"memory");
    return value;
}
#endif
