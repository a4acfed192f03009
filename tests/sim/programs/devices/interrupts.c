/* Interrupts from the event unit: to a running core, to one that waits for an event, and to one in wfi. */
#include "devices.h"

static volatile uint32_t taken, cause, status_in_handler, buffer_in_handler;

static __attribute__((interrupt, aligned(4))) void handler(void) {
    uint32_t value;
    __asm__ volatile("csrr %0, mcause" : "=r"(value));
    cause = value;
    __asm__ volatile("csrr %0, mstatus" : "=r"(value));
    status_in_handler = value;
    buffer_in_handler = REGISTER(EVENTS + 0x1c);
    taken++;
}

void program(uint32_t core) {
    enum { interrupt = 4, event = 5 };
    if (core == 0) {
        __asm__ volatile("csrw mtvec, %0" ::"r"(&handler));
        __asm__ volatile("csrw mie, %0" ::"r"(1u << interrupt));
        REGISTER(EVENTS + 0x0c) = 1u << interrupt;
        REGISTER(EVENTS + 0x100 + 4 * interrupt) = 1;
        results[0] = taken; /* not enabled yet */
        __asm__ volatile("csrsi mstatus, 8");
        idle(4);
        results[1] = taken;
        results[2] = cause;
        results[3] = buffer_in_handler; /* taking it has cleared the event */
        results[4] = status_in_handler & 8;
        set_mask(1u << event);
        results[5] = WAIT_FOR_EVENT(0x3c);
        results[6] = taken;
        set_mask(BARRIER_EVENT);
        barrier(); /* core 1 interrupts this wait, too: it must not arrive twice */
        results[7] = taken;
        barrier();
        __asm__ volatile("csrci mstatus, 8");
        __asm__ volatile("wfi");
        results[8] = taken; /* woken, not interrupted */
        REGISTER(EVENTS + 0x28) = 1u << interrupt;
        REGISTER(EVENTS + 0x0c) = 0;
    } else if (core == 1) {
        idle(100);
        REGISTER(EVENTS + 0x100 + 4 * interrupt) = 1;
        idle(100);
        results[16] = REGISTER(EVENTS_OF_ALL + 0x18); /* asleep again */
        REGISTER(EVENTS + 0x100 + 4 * event) = 1;
        set_mask(BARRIER_EVENT);
        idle(100);
        REGISTER(EVENTS + 0x100 + 4 * interrupt) = 1;
        idle(100);
        barrier();
        barrier();
        idle(100);
        REGISTER(EVENTS + 0x100 + 4 * interrupt) = 1;
    } else {
        set_mask(BARRIER_EVENT);
        barrier();
        barrier();
    }
}
