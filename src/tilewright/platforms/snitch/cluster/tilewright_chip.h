/* The cluster as the runtime and kernels use it: who runs, where cores meet, streams and loops of the FPU. */
#ifndef TILEWRIGHT_CHIP_H
#define TILEWRIGHT_CHIP_H

#include <stdint.h>

#define TW_CORES_OF_CLUSTER 8 /* that compute; the one behind them moves data */
#define TW_HARTS_OF_CLUSTER 9

static inline int tw_core(void) {
    uint32_t id;
    __asm__("csrr %0, mhartid" : "=r"(id));
    return (int)id;
}

/* Results of the FPU, where there is one, are written some time behind their instructions. Behind this all of them are: a
 * number comes from it, and is used. */
static inline void tw_fpu_fence(void) {
#ifdef __riscv_flen
    uint32_t number;
    __asm__ volatile("fmv.x.w %0, fa0\nmv zero, %0" : "=r"(number)::"memory");
#endif
}

/* Waits until all cores are here, by a control register that answers then. What the FPU of each stored is there for the
 * others. */
static inline void tw_meet(void) {
    tw_fpu_fence();
    __asm__ volatile("csrr zero, 0x7C2" ::: "memory");
}

#endif
