/* Start-up of a Cortex-M, its UART and the system timer. Nothing here is part of a network. */
#include "tilewright_board.h"

extern uint32_t __stack_top[], __data_start[], __data_end[], __bss_start[], __bss_end[];
extern const uint32_t __data_image[];
extern int main(void);

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define SYSTICK_CONTROL REGISTER(0xE000E010)
#define SYSTICK_RELOAD REGISTER(0xE000E014)
#define SYSTICK_VALUE REGISTER(0xE000E018)
#define COPROCESSORS REGISTER(0xE000ED88)
#define RESET REGISTER(0xE000ED0C)
#define CONFIGURATION REGISTER(0xE000ED14)
#define FAULT_STATUS REGISTER(0xE000ED28)
#define SYSTICK_TICKS 0x1000000u /* it counts 24 bits down */

/* The UART, whose address the linker script says. */
extern volatile uint32_t __uart[];
enum { UART_DATA = 0, UART_STATE = 1, UART_CONTROL = 2, UART_DIVIDER = 4 };
#define UART_FULL 1u
#define UART_SENDS 1u

static void start_uart(void) {
    __uart[UART_DIVIDER] = 16; /* clock cycles of a bit, as few as there may be */
    __uart[UART_CONTROL] = UART_SENDS;
}

static void await_uart(void) {
    while (__uart[UART_STATE] & UART_FULL)
        ;
}

void tw_put(char letter) {
    await_uart();
    __uart[UART_DATA] = (uint8_t)letter;
}

void tw_print(const char *text) {
    for (; *text; text++)
        tw_put(*text);
}

volatile uint32_t tw_status;

_Noreturn void tw_exit(int status) {
    tw_status = (uint32_t)status;
    await_uart();
    __asm__ volatile("dsb" ::: "memory");
    RESET = 0x05FA0004;
    for (;;)
        ;
}

static volatile uint32_t rounds;

static void count_round(void) { rounds++; }

void tw_start_timer(void) {
    SYSTICK_CONTROL = 0;
    SYSTICK_RELOAD = SYSTICK_TICKS - 1;
    SYSTICK_VALUE = 0;
    rounds = 0;
    SYSTICK_CONTROL = 7;       /* the core's clock, an interrupt at the end of each round */
    while (SYSTICK_VALUE == 0) /* until the first tick */
        ;
}

uint64_t tw_ticks(void) {
    uint32_t before, value;
    do {
        before = rounds;
        value = SYSTICK_VALUE;
    } while (before != rounds);
    return (uint64_t)before * SYSTICK_TICKS + (SYSTICK_TICKS - 1 - value);
}

#define PAINT 0x5AA5C33Cu
static uint32_t *painted;

__attribute__((noinline)) void tw_paint_stack(void) {
    painted = (uint32_t *)__builtin_frame_address(0) - 64;
    for (uint32_t *word = __bss_end; word < painted; word++)
        *(volatile uint32_t *)word = PAINT;
}

uint32_t tw_painted_over(void) {
    const uint32_t *word = __bss_end;
    while (word < painted && *word == PAINT)
        word++;
    return (uint32_t)(painted - word) * 4;
}

static void fault(void) {
    const uint32_t status = FAULT_STATUS;
    char digits[] = "........\n";
    for (int i = 0; i < 8; i++)
        digits[i] = "0123456789abcdef"[status >> (28 - 4 * i) & 15];
    tw_print("fault with status ");
    tw_print(digits);
    tw_exit(4);
}

void tw_reset(void);

void tw_reset(void) {
#if defined __ARM_FP || defined __ARM_FEATURE_MVE
    COPROCESSORS |= 0xFu << 20;
    __asm__ volatile("dsb\nisb" ::: "memory");
#endif
#ifndef __ARM_FEATURE_UNALIGNED
    CONFIGURATION |= 1u << 3; /* traps them, where a larger core runs code of a smaller one */
#endif
    for (uint32_t i = 0; i < (uint32_t)(__data_end - __data_start); i++)
        __data_start[i] = __data_image[i];
    for (uint32_t *word = __bss_start; word < __bss_end; word++)
        *word = 0;
    start_uart();
    tw_exit(main());
}

typedef void (*handler)(void);
extern const handler vectors[16];
__attribute__((section(".vectors"), used)) const handler vectors[16] = {
    (handler)(uintptr_t)__stack_top,
    tw_reset,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
    0,
    0,
    0,
    fault,
    fault,
    0,
    fault,
    count_round,
};
