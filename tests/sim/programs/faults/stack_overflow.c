/* Recursion that is too deep for the stack of a core. */
#include "chip.h"

static __attribute__((noinline)) uint32_t depth(uint32_t left) { /* FAULT */
    volatile uint32_t here[8];
    for (uint32_t i = 0; i < 8; i++)
        here[i] = left; /* FAULT */
    return left == 0 ? here[0] : depth(left - 1) + here[1];
}

void program(uint32_t core) {
    if (core == 1)
        result = depth(FAULTY ? 40 : 8);
}
