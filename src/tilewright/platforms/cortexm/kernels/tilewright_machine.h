/* What layers that run tile by tile ask for. There is neither a DMA nor a second core here: the core copies, at once. */
#ifndef TILEWRIGHT_MACHINE_H
#define TILEWRIGHT_MACHINE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __ARM_FEATURE_MVE
#include <arm_mve.h>
#endif

#define TW_CORES(core, cores) for (int core = 0; core < (cores); core++)

static inline void tw_copy_run(unsigned char *to, const unsigned char *from, size_t bytes) {
    size_t done = 0;
    for (; bytes - done >= 16; done += 16) {
#if defined __ARM_FEATURE_MVE
        vst1q_u8(to + done, vld1q_u8(from + done));
#else
        uint32_t words[4];
        memcpy(words, from + done, 16);
        memcpy(to + done, words, 16);
#endif
    }
    for (; bytes - done >= 4; done += 4) {
        uint32_t word;
        memcpy(&word, from + done, 4);
        memcpy(to + done, &word, 4);
    }
    for (; done < bytes; done++)
        to[done] = from[done];
}

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
