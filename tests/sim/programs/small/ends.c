/* Programs that never end well: END chooses how. */
#include "chip.h"

void tw_cluster_main(uint32_t core) { (void)core; }

__attribute__((noinline)) void spin_forever(void) {
    for (;;)
        __asm__ volatile("nop");
}

__attribute__((noinline)) void print_forever(void) {
    for (;;)
        REGISTER(0x1A10F000) = 'x';
}

__attribute__((noinline)) void sleep_forever(void) { __asm__ volatile("wfi"); }

__attribute__((noinline)) void store_nowhere(void) { REGISTER(0x30000004u) = 1; /* here */ }

__attribute__((noinline)) void run_nonsense(void) { __asm__ volatile(".word 0xffffffff"); }

int main(void) {
    END();
    return 0;
}
