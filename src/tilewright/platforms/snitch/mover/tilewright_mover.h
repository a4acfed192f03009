/* The DMA as an engine: it copies within L1 beside the cores. */
#ifndef TILEWRIGHT_MOVER_H
#define TILEWRIGHT_MOVER_H

#include <stddef.h>
#include <stdint.h>

/* Starts copying rows of bytes; strides are in bytes. What drives calls it. */
void tw_mover_start(void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row, ptrdiff_t from_row);

/* Behind it all has been copied, transfers from other memories, too: who is `recent` makes no difference. */
void tw_await_mover(int recent);

#endif
