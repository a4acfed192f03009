/* The machine that generated code runs on: the DMA between L2 and L1, and the cores of the cluster. All cores run the
 * network together; the one behind those that work drives the DMA and NEUREKA. */
#ifndef TILEWRIGHT_MACHINE_H
#define TILEWRIGHT_MACHINE_H

#include "tilewright_chip.h"

#include <stddef.h>
#include <stdint.h>

/* In L1, where cores reach it at once. */
#define TW_NEAR __attribute__((section(".near")))
/* How many cores the network uses. */
extern int tw_team;

/* Starts copying planes x rows runs of `bytes`; strides are in bytes. Until its channel is waited for, the destination may
 * be neither read nor written, and the source may not be written. There are shorter ways for one plane and for one run.
 * What drives calls them; copies within L1 are made, and so called, by all cores together. */
void tw_dma_planes(int channel, void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row,
                   ptrdiff_t from_row, int planes, ptrdiff_t to_plane, ptrdiff_t from_plane);
void tw_dma_rows(int channel, void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row, ptrdiff_t from_row);
void tw_dma_run(int channel, void *to, const void *from, size_t bytes);
static inline __attribute__((always_inline)) void tw_dma_start(int channel, void *to, const void *from, size_t bytes,
                                                               int rows, ptrdiff_t to_row, ptrdiff_t from_row,
                                                               int planes, ptrdiff_t to_plane, ptrdiff_t from_plane) {
    if (planes != 1)
        tw_dma_planes(channel, to, from, bytes, rows, to_row, from_row, planes, to_plane, from_plane);
    else if (rows != 1)
        tw_dma_rows(channel, to, from, bytes, rows, to_row, from_row);
    else
        tw_dma_run(channel, to, from, bytes);
}

/* Returns when all transfers started on the channel are complete; there may be none. The cores learn of it when they next
 * meet. */
void tw_dma_wait(int channel);

/* Bytes of L2, one for each that the network uses of L1, which copies between L3 and L1 pass on their way. */
extern unsigned char *tw_relay;

/* Routines of the network are given the number of the core that runs them. They are inlined into one that is there
 * twice: for the core that drives and for those that work, and neither has instructions of the other. For each line of
 * instructions that is new to it a core waits 18 cycles. */
#define TW_ROUTINE static inline __attribute__((always_inline))
#define TW_ROLES(routines, ...)                                                                                        \
    do {                                                                                                               \
        if (tw_core() == TW_CORES_OF_CLUSTER)                                                                          \
            routines(TW_CORES_OF_CLUSTER, __VA_ARGS__);                                                                \
        else                                                                                                           \
            routines(tw_core() % TW_CORES_OF_CLUSTER, __VA_ARGS__);                                                    \
    } while (0)

/* All cores go on when all are here. */
#define TW_MEET tw_barrier()

/* So many cores may go on that are, or come, where their kernel waits for what drives. */
#define TW_RELEASE(cores) tw_open(cores)

/* The block behind it runs once on each of the first cores, and all are done when it is left: TW_CORES(core, 8) { ... }
 * The block must not be left by break. */
#define TW_CORES(core, cores)                                                                                          \
    for (int core = tw_me, core##_first = 1; core##_first; core##_first = (tw_barrier(), 0))                           \
        if (core < (cores))

/* What drives the DMA and other engines, and no other core. */
#define TW_DRIVEN if (tw_me == TW_CORES_OF_CLUSTER)

/* Two blocks at once: what drives, and cores that work. Both are done when the second one is left:
 * TW_BESIDE { ... } TW_CORES_BESIDE(core, 8) { ... } */
#define TW_BESIDE TW_DRIVEN
#define TW_CORES_BESIDE(core, cores) TW_CORES(core, cores)

/* The same where what drives has said in its block that cores need not wait for the rest of that. */
#define TW_ARRIVE tw_arrive()
#define TW_CORES_ARRIVED(core, cores)                                                                                  \
    for (int core = tw_me, core##_first = 1; core##_first;                                                             \
         core##_first = (tw_me == TW_CORES_OF_CLUSTER ? (void)tw_wait_for_event() : tw_barrier(), 0))                  \
        if (core < (cores))

/* The block behind it starts work on another engine. TW_START(neureka) { ... } Behind TW_AWAIT that is done; if not `recent`,
 * what was started before the last TW_AWAIT. The block of TW_DESCRIBE describes what the next TW_START starts, which is
 * empty then. */
#define TW_START(engine) TW_DRIVEN for (int engine##_goes = 1; engine##_goes; engine##_goes = (tw_##engine##_go(), 0))
#define TW_DESCRIBE(engine) TW_DRIVEN
#define TW_AWAIT(engine, recent) tw_await_##engine(recent)
void tw_await_neureka(int recent);

/* Places in a network that profilers know: each is an entry of a section that is not loaded, its address and a name; there
 * is no instruction for it. Define it otherwise to store the cycle counter on the chip itself. */
#ifndef TW_MARK
#define TW_MARK(group, place, number)                                                                                  \
    __asm__ volatile(".pushsection .tilewright.marks\n.4byte 9f\n.asciz \"" #group " " #place " " #number              \
                     "\"\n.popsection\n9:")
#endif

#endif
