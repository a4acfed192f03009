/* What the firmware asks of the board. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

void board_start(void);
void board_print(const char *text);
/* Ticks of the core's clock; they begin again after 16 million. */
uint32_t board_ticks(void);
_Noreturn void board_sleep(void);

#endif
