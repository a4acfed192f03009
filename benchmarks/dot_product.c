/* Dot products of bytes by a scalar loop. Built with -DCORES=N for the simulated machine, on whose cluster N cores run it,
   and with -DLINUX for an emulator of one core. */
#include <stdint.h>

#define LENGTH 1024

static __attribute__((noinline, noipa)) int32_t dot_product(const int8_t *a, const int8_t *b, int length) {
    int32_t sum = 0;
#pragma GCC unroll 1
    for (int i = 0; i < length; i++)
        sum += a[i] * b[i];
    return sum;
}

static int32_t repeated(int8_t *values) {
    int32_t sum = 0;
    for (int i = 0; i < 2 * LENGTH; i++)
        values[i] = (int8_t)(i * 7 + 3);
    for (int i = 0; i < REPEATS; i++)
        sum += dot_product(values, values + LENGTH, LENGTH);
    return sum;
}

#ifdef LINUX
static int8_t data[2 * LENGTH];

void _start(void) {
    register int32_t status __asm__("a0") = repeated(data) & 1;
    register int32_t call __asm__("a7") = 93; /* exit */
    __asm__ volatile("ecall" : : "r"(status), "r"(call));
}
#else
#include "tilewright_chip.h"

extern int8_t __l1_start[];
extern void _start(void);
static volatile int32_t results[TW_CORES_OF_CLUSTER], finished[TW_CORES_OF_CLUSTER];

void tw_cluster_main(int core) {
    results[core] = repeated(__l1_start + core * (2 * LENGTH + 4));
    finished[core] = 1;
}

int main(void) {
    for (uint32_t i = 0; i < CORES; i++)
        TW_REGISTER(TW_CLUSTER_CONTROL + 0x40 + 4 * i) = (uint32_t)_start;
    TW_REGISTER(TW_CACHE_CONTROL) = 0xffffffffu;
    TW_REGISTER(TW_CLUSTER_CONTROL + 8) = (1u << CORES) - 1;
    for (int i = 0; i < CORES; i++)
        while (!finished[i])
            for (volatile int wait = 0; wait < 1000; wait++)
                ;
    for (int i = 1; i < CORES; i++)
        if (results[i] != results[0])
            return 1;
    return 0;
}
#endif
