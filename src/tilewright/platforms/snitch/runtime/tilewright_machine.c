#include "tilewright_machine.h"

struct tw_dma tw_dma TW_NEAR;

static int in_l1(const void *address) { return (uintptr_t)address >> TW_L1_BITS == 0x10000000u >> TW_L1_BITS; }

/* dmsrc, dmdst, dmstr, dmrep, dmcpyi of rows; addresses have 64 bits. */
static inline void give_rows(ptrdiff_t from_row, ptrdiff_t to_row, int rows) {
    __asm__ volatile(".insn r 0x2B, 0, 6, x0, %0, %1\n.insn r 0x2B, 0, 7, x0, %2, x0" ::"r"(from_row), "r"(to_row),
                     "r"(rows)
                     : "memory");
}
static inline void copy_rows(void *to, const void *from, size_t bytes) {
    __asm__ volatile(".insn r 0x2B, 0, 0, x0, %0, x0\n"
                     ".insn r 0x2B, 0, 1, x0, %1, x0\n"
                     ".insn r 0x2B, 0, 2, x0, %2, x2" ::"r"(from),
                     "r"(to), "r"(bytes)
                     : "memory");
}
/* dmstati: whether anything is left to do. Numbers of transfers that are complete can be ahead of their data. */
static inline int busy(void) {
    uint32_t value;
    __asm__ volatile(".insn r 0x2B, 0, 4, %0, x0, x2" : "=r"(value)::"memory");
    return value != 0;
}

static void start(void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row, ptrdiff_t from_row, int planes,
                  ptrdiff_t to_plane, ptrdiff_t from_plane) {
    unsigned char *target = to;
    const unsigned char *source = from;
    if (bytes == 0) /* parts of a tensor may be empty */
        return;
    if (rows > 1 && to_row == (ptrdiff_t)bytes && from_row == (ptrdiff_t)bytes) {
        bytes *= (size_t)rows;
        rows = 1;
    }
    if (rows == 1 && planes > 1) { /* planes are the rows of one transfer */
        rows = planes;
        to_row = to_plane, from_row = from_plane;
        planes = 1;
    }
    if (rows != 1)
        give_rows(from_row, to_row, rows);
    for (int plane = 0; plane < planes && rows > 0; plane++, target += to_plane, source += from_plane) {
        if (rows == 1)
            tw_dma_copy_run(target, source, bytes);
        else
            copy_rows(target, source, bytes);
    }
}

void tw_dma_start_rows(int channel, void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row,
                       ptrdiff_t from_row, int planes, ptrdiff_t to_plane, ptrdiff_t from_plane) {
    const int together = in_l1(to) && in_l1(from);
    if (together)
        tw_meet();
    if (tw_core() == TW_CORES_OF_CLUSTER) {
        start(to, from, bytes, rows, to_row, from_row, planes, to_plane, from_plane);
        tw_dma.last[channel & (TW_DMA_CHANNELS - 1)] = ++tw_dma.started;
        if (together)
            tw_dma_wait(channel);
    }
    if (together)
        tw_meet();
}

void tw_dma_start_within(int channel, void *to, const void *from, size_t bytes) {
    tw_dma_start_rows(channel, to, from, bytes, 1, 0, 0, 1, 0, 0);
}

/* Only that nothing at all is left to do is sure to be true: a wait is for all transfers, but only if its own may be among
 * those that are left. */
void tw_dma_wait(int channel) {
    if ((int32_t)(tw_dma.last[channel & (TW_DMA_CHANNELS - 1)] - tw_dma.complete) <= 0)
        return;
    while (busy())
        ;
    tw_dma.complete = tw_dma.started;
}

/* As an engine (tilewright_mover.h). */
void tw_mover_start(void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row, ptrdiff_t from_row) {
    start(to, from, bytes, rows, to_row, from_row, 1, 0, 0);
    tw_dma.started++;
}
void tw_await_mover(int recent) {
    (void)recent;
    while (busy())
        ;
    tw_dma.complete = tw_dma.started;
}

/* The library copies byte by byte. Here two numbers of 64 bits, words, or what is left; the FPU loads the next one before the
 * last one is there. */
static inline void copy(unsigned char *to, const unsigned char *from, size_t bytes) {
    const uintptr_t apart = ((uintptr_t)to | (uintptr_t)from) & 7;
#ifdef __riscv_flen
    if (apart == 0)
        for (; bytes >= 32; bytes -= 32, to += 32, from += 32)
            __asm__ volatile("fld ft3, 0(%1)\nfld ft4, 8(%1)\nfld ft5, 16(%1)\nfld ft6, 24(%1)\n"
                             "fsd ft3, 0(%0)\nfsd ft4, 8(%0)\nfsd ft5, 16(%0)\nfsd ft6, 24(%0)" ::"r"(to),
                             "r"(from)
                             : "ft3", "ft4", "ft5", "ft6", "memory");
#endif
    if ((apart & 3) == 0)
        for (; bytes >= 4; bytes -= 4, to += 4, from += 4)
            *(volatile uint32_t *)to = *(const volatile uint32_t *)from;
    for (; bytes > 0; bytes--)
        *(volatile unsigned char *)to++ = *(const volatile unsigned char *)from++;
}

void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
    copy(to, from, bytes);
    return to;
}

void *memset(void *to, int value, size_t bytes) {
    volatile unsigned char *target = to;
    const uint32_t word = (uint32_t)(unsigned char)value * 0x01010101u;
    for (; bytes > 0 && (uintptr_t)target % 4 != 0; bytes--)
        *target++ = (unsigned char)value;
    for (; bytes >= 4; bytes -= 4, target += 4)
        *(volatile uint32_t *)target = word;
    for (; bytes > 0; bytes--)
        *target++ = (unsigned char)value;
    return to;
}

void *memmove(void *to, const void *from, size_t bytes) {
    volatile unsigned char *const target = to;
    const volatile unsigned char *const source = from;
    if ((uintptr_t)to <= (uintptr_t)from)
        copy(to, from, bytes);
    else
        for (size_t left = bytes; left > 0; left--)
            target[left - 1] = source[left - 1];
    return to;
}
