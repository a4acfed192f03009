/* The machine that generated code runs on: the DMA between DRAM and L1 (TCDM), and the cores of the cluster. All cores run
 * the network together; the one behind those that compute drives the DMA and other engines. */
#ifndef TILEWRIGHT_MACHINE_H
#define TILEWRIGHT_MACHINE_H

#include "tilewright_chip.h"

#include <stddef.h>
#include <stdint.h>

#define TW_L1_BITS 17

/* In L1, where cores reach it at once. */
#define TW_NEAR __attribute__((section(".near")))

#define TW_DMA_CHANNELS 128 /* a power of two; more of them share places, and so wait for each other */

/* What is asked at every transfer; in L1, because DRAM is far away. Transfers have numbers from 1 on. */
extern struct tw_dma {
    uint32_t started, complete;
    uint32_t last[TW_DMA_CHANNELS]; /* of each channel */
} tw_dma;

/* dmsrc and dmdst, whose addresses have 64 bits, and dmcpyi of one run of bytes; the core waits while the queue is full. */
static inline void tw_dma_copy_run(void *to, const void *from, size_t bytes) {
    __asm__ volatile(".insn r 0x2B, 0, 0, x0, %0, x0\n"
                     ".insn r 0x2B, 0, 1, x0, %1, x0\n"
                     ".insn r 0x2B, 0, 2, x0, %2, x0" ::"r"(from),
                     "r"(to), "r"(bytes)
                     : "memory");
}

/* Any transfer, and one of a run of bytes within L1, where addresses of both sides are alike but for its bits. */
void tw_dma_start_rows(int channel, void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row,
                       ptrdiff_t from_row, int planes, ptrdiff_t to_plane, ptrdiff_t from_plane);
void tw_dma_start_within(int channel, void *to, const void *from, size_t bytes);

/* Starts copying planes x rows runs of `bytes`; strides are in bytes. Until its channel is waited for, the destination may
 * be neither read nor written, and the source may not be written. The core that moves data calls it; where both sides are
 * in L1 all cores do, and it is complete when they go on. Most transfers are of one run, which takes less than a call. */
static inline __attribute__((always_inline)) void tw_dma_start(int channel, void *to, const void *from, size_t bytes,
                                                               int rows, ptrdiff_t to_row, ptrdiff_t from_row,
                                                               int planes, ptrdiff_t to_plane, ptrdiff_t from_plane) {
    if (!(__builtin_constant_p(rows * planes) && rows * planes == 1 && __builtin_constant_p(bytes) && bytes > 0))
        tw_dma_start_rows(channel, to, from, bytes, rows, to_row, from_row, planes, to_plane, from_plane);
    else if (((uintptr_t)to ^ (uintptr_t)from) >> TW_L1_BITS == 0)
        tw_dma_start_within(channel, to, from, bytes);
    else if (tw_core() == TW_CORES_OF_CLUSTER) {
        tw_dma_copy_run(to, from, bytes);
        tw_dma.last[channel & (TW_DMA_CHANNELS - 1)] = ++tw_dma.started;
    }
}

/* Returns when all transfers started on the channel are complete; there may be none. The cores learn of it when they next
 * meet. */
void tw_dma_wait(int channel);

/* Routines of the network are given the number of the core that runs them. They are inlined into one that is there
 * twice: for the core that moves data and for those that compute, and neither has instructions of the other. */
#define TW_ROUTINE static inline __attribute__((always_inline))
#define TW_ROLES(routines, ...)                                                                                        \
    do {                                                                                                               \
        if (tw_core() == TW_CORES_OF_CLUSTER)                                                                          \
            routines(TW_CORES_OF_CLUSTER, __VA_ARGS__);                                                                \
        else                                                                                                           \
            routines(tw_core() % TW_CORES_OF_CLUSTER, __VA_ARGS__);                                                    \
    } while (0)

/* All cores go on when all are here. */
#define TW_MEET tw_meet()

/* The block behind it runs once on each of the first cores, and all are done when it is left: TW_CORES(core, 8) { ... }
 * The block must not be left by break. */
#define TW_CORES(core, cores)                                                                                          \
    for (int core = tw_me, core##_first = 1; core##_first; core##_first = (tw_meet(), 0))                              \
        if (core < (cores))

/* What drives the DMA and other engines, and no other core. */
#define TW_DRIVEN if (tw_me == TW_CORES_OF_CLUSTER)

/* Two blocks at once: what drives, and cores that work. Both are done when the second one is left:
 * TW_BESIDE { ... } TW_CORES_BESIDE(core, 8) { ... } */
#define TW_BESIDE TW_DRIVEN
#define TW_CORES_BESIDE(core, cores) TW_CORES(core, cores)

/* The block behind it starts work on another engine: TW_START(ita) { ... } Behind TW_AWAIT that is done; if not `recent`,
 * what was started before the last TW_AWAIT. */
#define TW_START(engine) TW_DRIVEN
#define TW_AWAIT(engine, recent) tw_await_##engine(recent)

/* Places in a network that profilers know: each is an entry of a section that is not loaded, its address and a name; there
 * is no instruction for it. Define it otherwise to store the cycle counter on the chip itself. */
#ifndef TW_MARK
#define TW_MARK(group, place, number)                                                                                  \
    __asm__ volatile(".pushsection .tilewright.marks\n.4byte 9f\n.asciz \"" #group " " #place " " #number              \
                     "\"\n.popsection\n9:")
#endif

#endif
