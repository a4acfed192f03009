/* Copies a buffer that is half full, byte by byte: a warning; copies structs with gaps: nothing. */
#include "chip.h"

struct with_gaps {
    char letter;
    int32_t number;
    char other;
    int64_t large;
};
#define SIZE 32
IN_L1 static volatile uint8_t from[SIZE], to[SIZE];
IN_L1 static volatile struct with_gaps first;
IN_L1 static struct with_gaps second;

static __attribute__((noinline)) void copy(volatile void *target, const volatile void *source, size_t size) {
    for (size_t i = 0; i < size; i++)
        ((volatile uint8_t *)target)[i] = ((const volatile uint8_t *)source)[i]; /* FAULT */
}

static __attribute__((noinline)) struct with_gaps copied(const struct with_gaps *source) { return *source; }

void program(uint32_t core) {
    if (core != 0)
        return;
    for (uint32_t i = 0; i < (FAULTY ? SIZE / 2 : SIZE); i++)
        from[i] = 1;
    copy(to, from, SIZE);
    first.letter = 'a';
    first.number = 1;
    first.other = 'b';
    first.large = 2;
    copy(&second, &first, sizeof first);
    struct with_gaps third = copied(&second);
    result = sum(to, SIZE / 2) + (uint32_t)third.number + (uint32_t)third.large;
}
