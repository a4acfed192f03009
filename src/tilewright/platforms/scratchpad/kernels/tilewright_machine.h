/* The machine that generated code runs on: a DMA between memories, and cores. Here both are emulated, and every use that
 * would go wrong on some real machine is reported: see tilewright_machine.c. */
#ifndef TILEWRIGHT_MACHINE_H
#define TILEWRIGHT_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* Starts copying planes x rows runs of `bytes`; strides are in bytes. Until its channel is waited for, the destination may
 * be neither read nor written, and the source may not be written. */
void tw_dma_start(int channel, void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row, ptrdiff_t from_row,
                  int planes, ptrdiff_t to_plane, ptrdiff_t from_plane);

/* Returns when all transfers started on the channel are complete; there may be none. */
void tw_dma_wait(int channel);

/* Routines of the network are given the number of the core that runs them, where cores run them together. Here they do
 * not: nobody has to meet, and one thread drives and works. */
#define TW_ROUTINE static
#define TW_ROLES(routines, ...) routines(0, __VA_ARGS__)
#define TW_MEET ((void)0)
#define TW_DRIVEN

/* The block behind it runs once for every core, and all are done when it is left: TW_CORES(core, 8) { work(core); }
 * Here one core runs after the other, in an order that differs from call to call. The block must not be left by break. */
#define TW_CORES(core, cores) for (int core = tw_first_core(cores); core >= 0; core = tw_next_core())
/* The same beside a block that starts transfers and waits for them, which here runs first:
 * TW_BESIDE { ... } TW_CORES_BESIDE(core, 8) { work(core); } */
#define TW_BESIDE
#define TW_CORES_BESIDE(core, cores) TW_CORES(core, cores)
int tw_first_core(int cores);
int tw_next_core(void);

/* For the program around the network. */

enum tw_moment { TW_AT_START, TW_AT_WAIT, TW_AT_RANDOM };

/* When transfers copy, and the seed of all that is random. Without it they copy when waited for. */
void tw_machine_begin(enum tw_moment moment, uint64_t seed);

/* Fills a memory with noise, so that nobody relies on zeros, and remembers its name for messages. */
void tw_machine_memory(const char *name, void *start, size_t bytes);

/* Reports transfers that nobody has waited for. */
void tw_machine_finish(void);

#endif
