/* What a program on the emulated board does besides computing: it prints, ends, and counts time. */
#ifndef TILEWRIGHT_BOARD_H
#define TILEWRIGHT_BOARD_H

#include <stddef.h>
#include <stdint.h>

/* Print over the UART. */
void tw_put(char letter);
void tw_print(const char *text);
/* Ends the program by a reset of the system; 0 is success. */
_Noreturn void tw_exit(int status);
/* What it ended with, for whoever emulates the board. */
extern volatile uint32_t tw_status;

void tw_start_timer(void);
/* Ticks of the timer since it was started. */
uint64_t tw_ticks(void);

/* Fills the stack below the caller, and how many bytes of that were written since. */
void tw_paint_stack(void);
uint32_t tw_painted_over(void);

#endif
