/* Sums a buffer that was filled but for its last bytes. */
#include "chip.h"

#define SIZE 64
IN_L1 static volatile uint8_t buffer[SIZE];

void program(uint32_t core) {
    if (core != 0)
        return;
    for (uint32_t i = 0; i < SIZE - 8 * FAULTY; i++)
        buffer[i] = 1;
    result = 0;
    for (uint32_t i = 0; i < SIZE; i++)
        result += buffer[i]; /* FAULT */
}
