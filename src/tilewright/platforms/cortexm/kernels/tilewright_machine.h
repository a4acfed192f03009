/* What layers that run tile by tile ask for. There is neither a DMA nor a second core here: the core copies, at once. */
#ifndef TILEWRIGHT_MACHINE_H
#define TILEWRIGHT_MACHINE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TW_CORES(core, cores) for (int core = 0; core < (cores); core++)
#define TW_MEET ((void)0)
#define TW_DRIVEN

#if defined(__GNUC__) && defined(__ARM_FEATURE_MVE)
/* The last round of the loop copies as many bytes as are left. */
static inline void tw_copy_run(unsigned char *to, const unsigned char *from, size_t bytes) {
    __asm__ volatile("wlstp.8 lr, %2, 2f\n"
                     "1: vldrb.8 q0, [%1], #16\n"
                     "vstrb.8 q0, [%0], #16\n"
                     "letp lr, 1b\n"
                     "2:\n"
                     : "+r"(to), "+r"(from)
                     : "r"(bytes)
                     : "lr", "d0", "d1", "memory");
}
#else
/* Several words at a time, which have to be aligned, by as many registers as there are. */
#if defined(__GNUC__) && defined(__thumb2__)
#define TW_COPY_REGISTERS "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r12"
#define TW_COPY_LIST "{r3, r4, r5, r6, r8, r9, r10, r12}"
#define TW_COPY_BYTES 32
#elif defined(__GNUC__) && defined(__thumb__)
#define TW_COPY_REGISTERS "r3", "r4", "r5", "r6"
#define TW_COPY_LIST "{r3, r4, r5, r6}"
#define TW_COPY_BYTES 16
#endif
static inline void tw_copy_run(unsigned char *to, const unsigned char *from, size_t bytes) {
#ifdef TW_COPY_BYTES
    size_t rounds = (((uintptr_t)to | (uintptr_t)from) & 3u) == 0 ? bytes / TW_COPY_BYTES : 0;
    if (rounds > 0) {
        bytes -= rounds * TW_COPY_BYTES;
        __asm__ volatile(".syntax unified\n"
                         "1: ldmia %1!, " TW_COPY_LIST "\n"
                         "stmia %0!, " TW_COPY_LIST "\n"
                         "subs %2, %2, #1\n"
                         "bne 1b\n"
                         : "+l"(to), "+l"(from), "+l"(rounds)
                         :
                         : TW_COPY_REGISTERS, "cc", "memory");
    }
#endif
    for (; bytes >= 4; bytes -= 4, to += 4, from += 4) {
        uint32_t word;
        memcpy(&word, from, 4);
        memcpy(to, &word, 4);
    }
    for (; bytes > 0; bytes--)
        *to++ = *from++;
}
#endif

/* Copies planes x rows runs of bytes; strides are in bytes. Nobody has to wait for it. */
static inline void tw_dma_start(int channel, void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row,
                                ptrdiff_t from_row, int planes, ptrdiff_t to_plane, ptrdiff_t from_plane) {
    (void)channel;
    for (int plane = 0; plane < planes; plane++) {
        unsigned char *target = (unsigned char *)to + plane * to_plane;
        const unsigned char *source = (const unsigned char *)from + plane * from_plane;
        for (int row = 0; row < rows; row++, target += to_row, source += from_row)
            tw_copy_run(target, source, bytes);
    }
}

static inline void tw_dma_wait(int channel) { (void)channel; }

#endif
