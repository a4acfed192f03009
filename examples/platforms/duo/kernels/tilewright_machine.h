/* What generated code asks of the machine. All workers run the network together; the one behind those
 * that compute drives the DMA. */
#ifndef TILEWRIGHT_MACHINE_H
#define TILEWRIGHT_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#define TW_WORKERS 4 /* that compute */
#define TW_HARTS 5
#define TW_NEAR __attribute__((section(".near"))) /* in L1, where workers reach it at once */
#define TW_REGISTER(address) (*(volatile uint32_t *)(address))

/* Starts copying planes x rows runs of `bytes`; strides are in bytes. */
void tw_dma_start(int channel, void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row, ptrdiff_t from_row,
                  int planes, ptrdiff_t to_plane, ptrdiff_t from_plane);
/* Returns when all transfers started on the channel are complete. */
void tw_dma_wait(int channel);

static inline int tw_worker(void) {
    uint32_t id;
    __asm__("csrr %0, mhartid" : "=r"(id));
    return (int)id;
}

/* All workers go on when all are here: a load from the event unit, which answers then. */
static inline void tw_meet(void) {
    uint32_t event;
    __asm__ volatile(".insn i 0x03, 6, %0, 0x21C(%1)" : "=r"(event) : "r"(0x10204000u) : "memory");
}

#define TW_ROUTINE static
#define TW_ROLES(routines, ...) routines(tw_worker(), __VA_ARGS__)
#define TW_MEET tw_meet()
#define TW_CORES(core, cores)                                                                                          \
    for (int core = tw_me, core##_first = 1; core##_first; core##_first = (tw_meet(), 0))                              \
        if (core < (cores))
#define TW_DRIVEN if (tw_me == TW_WORKERS)
#define TW_BESIDE TW_DRIVEN
#define TW_CORES_BESIDE(core, cores) TW_CORES(core, cores)

/* Places that profilers know; there is no instruction for them. */
#define TW_MARK(group, place, number)                                                                                  \
    __asm__ volatile(".pushsection .tilewright.marks\n.4byte 9f\n.asciz \"" #group " " #place " " #number              \
                     "\"\n.popsection\n9:")

#endif
