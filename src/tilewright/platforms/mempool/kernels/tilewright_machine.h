/* The machine that generated code runs on: many small cores in tiles around one L1, and a DMA between it and L2. All cores
 * run the network together; the first one drives the DMA besides. */
#ifndef TILEWRIGHT_MACHINE_H
#define TILEWRIGHT_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#define TW_REGISTER(address) (*(volatile uint32_t *)(address))
#define TW_CONTROL 0x40000000u
#define TW_DMA 0x40010000u
#define TW_STDOUT 0xC0000000u
/* Of L1 each core has so many bytes in a row in its own tile: its stack and, at the top, words to meet by. */
#define TW_OWN 2048
#define TW_CORES_PER_TILE (TW_HARTS > 256 ? 8 : 4)
/* Groups with cores; there are four, of which other engines may have some. */
#ifndef TW_GROUPS
#define TW_GROUPS 4
#endif

/* Starts copying planes x rows runs of `bytes`; strides are in bytes. Until its channel is waited for, the destination may
 * be neither read nor written, and the source may not be written. Copies within L1 are made by all cores together. */
void tw_dma_start(int channel, void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row, ptrdiff_t from_row,
                  int planes, ptrdiff_t to_plane, ptrdiff_t from_plane);
/* Returns when all transfers started on the channel are complete. */
void tw_dma_wait(int channel);

/* Control registers and atomic instructions are written as numbers: the libraries are found by an architecture without. */
static inline int tw_core(void) {
    int id;
    __asm__(".insn i 0x73, 2, %0, x0, -0xEC" : "=r"(id)); /* csrr mhartid */
    return id;
}

static inline uint32_t tw_cycle(void) {
    uint32_t cycle;
    __asm__ volatile(".insn i 0x73, 2, %0, x0, -0x500" : "=r"(cycle)::"memory"); /* csrr mcycle */
    return cycle;
}

/* All cores go on when all are here. */
void tw_meet(int core);

#define TW_ROUTINE static
#define TW_ROLES(routines, ...) routines(tw_core(), __VA_ARGS__)
#define TW_MEET tw_meet(tw_me)

/* The block behind it runs once on each of the first cores, and all are done when it is left: TW_CORES(core, 8) { ... }
 * The block must not be left by break. */
#define TW_CORES(core, cores)                                                                                          \
    for (int core = tw_me, core##_first = 1; core##_first; core##_first = (tw_meet(tw_me), 0))                         \
        if (core < (cores))
/* What drives the DMA, and no other core. */
#define TW_DRIVEN if (tw_me == 0)
/* Two blocks at once, of which the driver runs both. */
#define TW_BESIDE TW_DRIVEN
#define TW_CORES_BESIDE(core, cores) TW_CORES(core, cores)

/* The block behind it starts work on another engine: TW_START(ita) { ... } Behind TW_AWAIT that is done; if not `recent`,
 * what was started before the last TW_AWAIT. */
#define TW_START(engine) TW_DRIVEN
#define TW_AWAIT(engine, recent) tw_await_##engine(recent)

/* Places in a network that profilers know: each is an entry of a section that is not loaded; there is no instruction for
 * it. */
#ifndef TW_MARK
#define TW_MARK(group, place, number)                                                                                  \
    __asm__ volatile(".pushsection .tilewright.marks\n.4byte 9f\n.asciz \"" #group " " #place " " #number              \
                     "\"\n.popsection\n9:")
#endif

#endif
