/* The board: vectors, start-up, a UART (CMSDK) and the system timer of an Arm MPS2 with a Cortex-M4. */
#include "board.h"

extern uint32_t stack_top[], data_start[], data_end[], bss_start[], bss_end[];
extern const uint32_t data_image[];
extern int main(void);

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define UART 0x40004000
#define SYSTICK 0xE000E010
#define COPROCESSORS REGISTER(0xE000ED88)

void board_start(void) {
    REGISTER(UART + 0x10) = 16; /* clock cycles of a bit, as few as there may be */
    REGISTER(UART + 0x08) = 1;  /* sends */
    REGISTER(SYSTICK + 4) = 0xFFFFFF;
    REGISTER(SYSTICK + 8) = 0;
    REGISTER(SYSTICK) = 5; /* counts down at the clock of the core */
}

uint32_t board_ticks(void) { return 0xFFFFFF - REGISTER(SYSTICK + 8); }

void board_print(const char *text) {
    for (; *text; text++) {
        while (REGISTER(UART + 4) & 1) /* until there is room for one more */
            ;
        REGISTER(UART) = (uint8_t)*text;
    }
}

void board_sleep(void) {
    for (;;)
        __asm__ volatile("wfi");
}

static void reset(void) {
    COPROCESSORS |= 0xFu << 20; /* the FPU */
    __asm__ volatile("dsb\nisb" ::: "memory");
    for (uint32_t i = 0; i < (uint32_t)(data_end - data_start); i++)
        data_start[i] = data_image[i];
    for (uint32_t *word = bss_start; word < bss_end; word++)
        *word = 0;
    board_start();
    (void)main();
    board_sleep();
}

static void fault(void) {
    board_print("fault\n");
    board_sleep();
}

typedef void (*handler)(void);
extern const handler vectors[7];
__attribute__((section(".vectors"), used)) const handler vectors[7] = {
    (handler)(uintptr_t)stack_top, reset, fault, fault, fault, fault, fault,
};
