/* Works on variables that a test reads and writes. */
#include "chip.h"

volatile uint32_t numbers[4] = {1, 2, 3, 4};
volatile uint32_t total;

void tw_cluster_main(uint32_t core) { (void)core; }

__attribute__((noinline)) uint32_t add_all(void) {
    uint32_t result = 0;
    for (uint32_t i = 0; i < 4; i++)
        result += numbers[i];
    return result;
}

int main(void) {
    total = add_all();
    return 0;
}
