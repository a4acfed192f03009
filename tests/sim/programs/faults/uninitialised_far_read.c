/* The same from a memory further away, with words. */
#include "chip.h"

#define SIZE 16
IN_L2 static volatile uint32_t buffer[SIZE];

void program(uint32_t core) {
    if (core != 1)
        return;
    for (uint32_t i = 0; i < SIZE - FAULTY * 4; i++)
        buffer[i] = 1;
    uint32_t total = 0;
    for (uint32_t i = 0; i < SIZE; i++)
        total += buffer[i]; /* FAULT */
    result = total;
}
