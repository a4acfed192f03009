/* What programs on an emulated board try: TRY chooses what. */
#include "tilewright_board.h"

#ifndef PLACE
#define PLACE "nowhere"
#endif
#define VECTOR_TABLE (*(volatile uint32_t *)0xE000ED08)

__attribute__((noinline)) static int semihosting(int operation, const void *argument) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

int say_hello(void);
int say_hello(void) {
    tw_print("hello\n");
    return 0;
}

int end_with_status(void);
int end_with_status(void) { return 300; }

int open_a_file(void);
int open_a_file(void) {
    const uintptr_t open[3] = {(uintptr_t)PLACE, 4, sizeof PLACE - 1};
    return semihosting(1, open) < 0;
}

int run_a_command(void);
int run_a_command(void) {
    const uintptr_t command[2] = {(uintptr_t)"touch " PLACE, sizeof "touch " PLACE - 1};
    return semihosting(0x12, command);
}

int print_by_semihosting(void);
int print_by_semihosting(void) { return semihosting(4, "hello\n"); }

int exit_by_semihosting(void);
int exit_by_semihosting(void) { return semihosting(0x18, (const void *)0x20026); }

int spin_forever(void);
__attribute__((noinline)) int spin_forever(void) {
    for (;;)
        __asm__ volatile("nop");
}

/* Handlers of faults as vendors' start-ups have them: they never end. */
int semihosting_with_endless_handlers(void);
int semihosting_with_endless_handlers(void) {
    static _Alignas(128) uintptr_t vectors[16];
    for (int i = 0; i < 16; i++)
        vectors[i] = (uintptr_t)spin_forever;
    VECTOR_TABLE = (uint32_t)(uintptr_t)vectors;
    return print_by_semihosting();
}

int stop_at_a_breakpoint(void);
int stop_at_a_breakpoint(void) {
    __asm__ volatile("bkpt 1");
    return 0;
}

int fault(void);
int fault(void) {
    __asm__ volatile("udf 1");
    return 0;
}

int lock_up(void);
__attribute__((noinline)) int lock_up(void) {
    VECTOR_TABLE = 0x70000000; /* nothing is there */
    return fault();
}

int sleep_forever(void);
int sleep_forever(void) {
    for (;;)
        __asm__ volatile("wfi");
}

int print_forever(void);
int print_forever(void) {
    for (;;)
        tw_print("0123456789abcdef");
}

int main(void) { return TRY(); }
