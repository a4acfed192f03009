/* Registers of the chip that the runtime uses. */
#ifndef TILEWRIGHT_CHIP_H
#define TILEWRIGHT_CHIP_H

#include <stdint.h>

#define TW_REGISTER(address) (*(volatile uint32_t *)(address))
#define TW_CLUSTER_CONTROL 0x10200000u
#define TW_CACHE_CONTROL 0x10201400u
#define TW_EVENTS 0x10204000u /* each core's own port of the event unit */
#define TW_DMA 0x10204400u    /* each core's own port of the DMA */
#define TW_UDMA 0x1A102000u
#define TW_STDOUT 0x1A10F000u
#define TW_L3 0x80000000u /* where programs have the bytes of the HyperRAM; no core can load or store there */
#define TW_DMA_EVENT (1u << 8)
#define TW_BARRIER_EVENT (1u << 16)
#define TW_CORES_OF_CLUSTER 8 /* that work; the one behind them drives */
#define TW_HARTS_OF_CLUSTER 9

/* Loads a register of the event unit; the core sleeps until there is an event for it. */
#define TW_WAIT_AT(offset)                                                                                             \
    __extension__({                                                                                                    \
        uint32_t value_;                                                                                               \
        __asm__ volatile(".insn i 0x03, 6, %0, %2(%1)" : "=r"(value_) : "r"(TW_EVENTS), "i"(offset) : "memory");       \
        value_;                                                                                                        \
    })

static inline int tw_core(void) {
    uint32_t id;
    __asm__("csrr %0, mhartid" : "=r"(id));
    return (int)(id & 31);
}

/* Waits until all cores are here. */
static inline void tw_barrier(void) { (void)TW_WAIT_AT(0x21C); }
/* The same in two halves: behind the second one, the next tw_wait_for_event, all have arrived. */
static inline void tw_arrive(void) {
    __asm__ volatile("" ::: "memory");
    TW_REGISTER(TW_EVENTS + 0x214) = 0;
}

/* Waits for an event of the mask and clears it. */
static inline uint32_t tw_wait_for_event(void) { return TW_WAIT_AT(0x3C); }

#endif
