/* Reads ahead by one word more than there are, and drops it. */
#include "chip.h"

#define SIZE 16
IN_L1 static volatile uint32_t buffer[SIZE + 2];

void program(uint32_t core) {
    if (core != 0)
        return;
    for (uint32_t i = 0; i < SIZE + 2 * !FAULTY; i++)
        buffer[i] = 1;
    uint32_t total = 0, next = buffer[0];
    for (uint32_t i = 0; i < SIZE; i++) {
        total += next;
        next = buffer[i + 1]; /* FAULT */
    }
    result = total;
}
