/* Sums binary32 numbers, of which the last one is missing. */
#include "chip.h"

#define SIZE 16
IN_L1 static volatile float numbers[SIZE];

void program(uint32_t core) {
    if (core != 0)
        return;
    for (uint32_t i = 0; i < SIZE - FAULTY; i++)
        numbers[i] = 1.0f;
    float total = 0.0f;
    for (uint32_t i = 0; i < SIZE; i++)
        total += numbers[i]; /* FAULT */
    result = (uint32_t)total;
}
