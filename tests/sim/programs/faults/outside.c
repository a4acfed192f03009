/* Reads where no memory is. */
#include "chip.h"

void program(uint32_t core) {
    if (core != 1)
        return;
    volatile uint32_t *place = (volatile uint32_t *)(FAULTY ? 0x1D000000u : 0x1C0FFFFCu);
    *place = 7; /* FAULT */
    result = *place;
}
