/* What layers that run tile by tile ask for. There is neither a DMA nor a second core here: the core copies, at once. */
#ifndef TILEWRIGHT_MACHINE_H
#define TILEWRIGHT_MACHINE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TW_CORES(core, cores) for (int core = 0; core < (cores); core++)

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
static inline void tw_copy_run(unsigned char *to, const unsigned char *from, size_t bytes) {
    size_t done = 0;
    for (; bytes - done >= 16; done += 16) {
        uint32_t words[4];
        memcpy(words, from + done, 16);
        memcpy(to + done, words, 16);
    }
    for (; bytes - done >= 4; done += 4) {
        uint32_t word;
        memcpy(&word, from + done, 4);
        memcpy(to + done, &word, 4);
    }
    for (; done < bytes; done++)
        to[done] = from[done];
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
