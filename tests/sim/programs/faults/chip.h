/* Registers that the faulty programs use, and how a correct program goes about them. */
#ifndef CHIP_H
#define CHIP_H
#include <stddef.h>
#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define CLUSTER_CONTROL 0x10200000u
#define EVENTS 0x10204000u
#define DMA 0x10204400u
#define NPU 0x10201000u
#define DMA_EVENT (1u << 8)
#define NPU_EVENT (1u << 12)
#define BARRIER_EVENT (1u << 16)

/* Neither is cleared at the start nor loaded. */
#define IN_L1 __attribute__((section(".l1"), aligned(64)))
#define IN_L2 __attribute__((section(".l2"), aligned(64)))

void _start(void);
void tw_cluster_main(uint32_t core);
void program(uint32_t core);
extern uint32_t result;

#define WAIT_FOR_EVENT(offset)                                                                                         \
    __extension__({                                                                                                    \
        uint32_t value_;                                                                                               \
        __asm__ volatile(".insn i 0x03, 6, %0, %2(%1)" : "=r"(value_) : "r"(EVENTS), "i"(offset) : "memory");          \
        value_;                                                                                                        \
    })

static inline void set_mask(uint32_t events) { REGISTER(EVENTS) = events; }
static inline uint32_t wait_for_event(void) { return WAIT_FOR_EVENT(0x3C); }
static inline void barrier(void) { (void)WAIT_FOR_EVENT(0x21C); }
static inline void lock(void) { (void)WAIT_FOR_EVENT(0xC0); }
static inline void unlock(void) { REGISTER(EVENTS + 0xC0) = 0; }

enum direction { to_l2 = 0, to_l1 = 1 << 17 };

static inline uint32_t dma(volatile void *l1, volatile void *l2, uint32_t size, enum direction direction) {
    uint32_t id = REGISTER(DMA);
    REGISTER(DMA) = size | (uint32_t)direction | 1u << 18 | 1u << 20;
    REGISTER(DMA) = (uint32_t)l1;
    REGISTER(DMA) = (uint32_t)l2; /* STARTS */
    return id;
}
static inline int dma_runs(uint32_t id) { return (REGISTER(DMA + 4) >> id & 1) != 0; }
static inline void dma_free(uint32_t id) { REGISTER(DMA + 4) = 1u << id; } /* FREES */
static inline void dma_wait(uint32_t id) {
    while (dma_runs(id))
        (void)wait_for_event();
    dma_free(id);
}

static inline void idle(uint32_t cycles) {
    for (uint32_t i = 0; i < cycles; i++)
        __asm__ volatile("nop");
}

static inline uint32_t sum(const volatile uint8_t *bytes, uint32_t count) {
    uint32_t result = 0;
    for (uint32_t i = 0; i < count; i++)
        result += bytes[i];
    return result;
}
#endif
