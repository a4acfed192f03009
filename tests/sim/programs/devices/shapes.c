/* Copies of all shapes by the runtime of compiled networks; the test looks at commands and bytes. */
#include "devices.h"

#include "tilewright_machine.h"

enum { area = 0x4000 };

/* The start of L1; the stacks and what the runtime keeps are at its end. */
#define NEAR ((uint8_t *)0x10000000u)
uint8_t far[area];
extern uint32_t __near_start[], __near_end[];

__attribute__((noinline)) void filled(void) { __asm__ volatile("" ::: "memory"); }

void program(uint32_t core) {
    if (core != 0)
        return;
    enable_caches();
    for (uint32_t *word = __near_start; word < __near_end; word++)
        *word = 0;
    for (uint32_t i = 0; i < area; i++) {
        far[i] = (uint8_t)(i * 7 + (i >> 8));
        NEAR[i] = (uint8_t)(i * 13 + 5 + (i >> 7));
    }
    filled();
    tw_dma_run(0, NEAR, far, 1000);
    tw_dma_rows(1, NEAR + 0x400, far + 0x400, 16, 4, 64, 100); /* lines on both sides */
    tw_dma_run(2, NEAR + 0x600, far + 0x800, 40);              /* behind them */
    tw_dma_rows(3, NEAR + 0x800, far + 0x900, 13, 10, 13, 100);
    tw_dma_rows(4, far + 0x1000, NEAR + 0xC00, 24, 9, 50, 36);
    tw_dma_rows(5, far + 0x1400, NEAR + 0x1000, 24, 9, 50, 24);
    tw_dma_rows(6, far + 0x1800, NEAR + 0x1400, 24, 5, 24, 24);
    tw_dma_planes(7, NEAR + 0x2000, far + 0x1C00, 8, 3, 16, 20, 4, 64, 100);
    tw_dma_planes(8, far + 0x2000, NEAR + 0x1800, 8, 3, 8, 12, 4, 64, 100);
    tw_dma_rows(9, NEAR + 0x2800, far + 0x2400, 2, 64, 5, 7);   /* more commands than the queues hold */
    tw_dma_rows(9, NEAR + 0x2C00, far + 0x2800, 20, 3, 40, 20); /* a second one that is waited for with it */
    for (int channel = 0; channel < 10; channel++)
        tw_dma_wait(channel);
}
