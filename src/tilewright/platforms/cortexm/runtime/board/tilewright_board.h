/* What a program on the emulated board does besides computing: it talks to its host by semihosting and counts time. */
#ifndef TILEWRIGHT_BOARD_H
#define TILEWRIGHT_BOARD_H

#include <stddef.h>
#include <stdint.h>

/* Asks the host: an operation by its number, and what it is about. */
static inline int tw_host(int operation, const void *argument) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void tw_print(const char *text);
/* Ends the program; 0 is success. */
_Noreturn void tw_exit(int status);
/* Moves all bytes of a file of the host; ends the program where that fails. */
void tw_read(const char *path, void *buffer, size_t bytes);
void tw_write(const char *path, const void *buffer, size_t bytes);

void tw_start_timer(void);
/* Ticks of the timer since it was started. */
uint64_t tw_ticks(void);

/* Fills the stack below the caller, and how many bytes of that were written since. */
void tw_paint_stack(void);
uint32_t tw_painted_over(void);

#endif
