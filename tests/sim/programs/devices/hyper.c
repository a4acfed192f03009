/* The memory outside, from the fabric controller: all shapes of transfers, queues and times. */
#include "devices.h"

enum { read = 0x08, write = 0x14 };
#define CHANNEL(id) (UDMA + 0x280 + 0x80 * (id))

IN_L2 uint8_t buffer[0x10000];
IN_L2 uint8_t back[0x10000];

static void ask(uint32_t id, uint32_t direction, volatile void *inside, uint32_t outside, uint32_t size) {
    uint32_t channel = CHANNEL(id);
    uint32_t address = direction == read ? 0x00 : 0x0c;
    REGISTER(channel + address) = (uint32_t)inside;
    REGISTER(channel + address + 4) = size;
    REGISTER(channel + 0x18) = direction == read ? 5 : 1;
    REGISTER(channel + 0x1c) = outside;
    REGISTER(channel + direction) = 0x14;
}
static uint32_t busy(uint32_t id) { return REGISTER(CHANNEL(id) + 0x24); }
static void rows(uint32_t which, uint32_t on, uint32_t length, uint32_t stride) {
    REGISTER(CHANNEL(0) + which) = on;
    REGISTER(CHANNEL(0) + which + 4) = length;
    REGISTER(CHANNEL(0) + which + 8) = stride;
}
static uint32_t timed(uint32_t direction, uint32_t size) {
    ask(0, direction, buffer, 0x10000, 4);
    while (busy(0) & 1)
        ;
    uint32_t channel = CHANNEL(0), address = direction == read ? 0x00 : 0x0c;
    REGISTER(channel + address) = (uint32_t)buffer;
    REGISTER(channel + address + 4) = size;
    uint32_t since = cycles();
    REGISTER(channel + direction) = 0x14;
    while (REGISTER(channel + 0x24) & 1)
        ;
    return cycles() - since;
}

int main(void) {
    REGISTER(UDMA) = ~0u;
    for (uint32_t i = 0; i < sizeof buffer; i++)
        buffer[i] = (uint8_t)(i * 11 + (i >> 6));
    ask(0, read, back, 0x20000, 16); /* nothing was written there */
    while (busy(0) & 1)
        ;
    results[0] = back[0];
    for (uint32_t size = 1; size < 10; size++) { /* odd sizes at odd addresses */
        ask(0, write, buffer + size, 0x100 + 17 * size, size);
        while (busy(0) & 1)
            ;
    }
    ask(0, write, buffer, 0x1000, 1024);
    ask(1, read, back, 0x1000, 1024); /* waits for the one before: there is one bus */
    ask(1, read, back + 1024, 0x1100, 256);
    results[1] = busy(0);
    results[2] = busy(1);
    while ((busy(0) & 1) || (busy(1) & 1))
        ;
    rows(0x28, 1, 64, 256); /* outside */
    ask(0, write, buffer, 0x4000, 16 * 64);
    while (busy(0) & 1)
        ;
    ask(0, read, back + 0x1000, 0x4000, 16 * 64);
    while (busy(0) & 1)
        ;
    rows(0x28, 0, 0, 0);
    rows(0x34, 1, 64, 100); /* inside */
    ask(0, read, back + 0x2000, 0x1000, 1024);
    while (busy(0) & 1)
        ;
    rows(0x34, 0, 0, 0);
    for (int i = 0; i < 20; i++) /* more than the queue holds */
        ask(0, write, buffer + 64 * i, 0x8000 + (uint32_t)(128 * i), 64);
    while (busy(0) & 1)
        ;
    for (uint32_t i = 0; i < 11; i++) {
        results[16 + i] = timed(write, 64u << i);
        results[32 + i] = timed(read, 64u << i);
    }
    rows(0x28, 1, 64, 256);
    results[48] = timed(read, 1024);
    rows(0x28, 0, 0, 0);
    rows(0x34, 1, 64, 256);
    results[49] = timed(read, 1024);
    rows(0x34, 0, 0, 0);
    REGISTER(UDMA + 0x384) = 32; /* latency of the memory */
    results[50] = timed(read, 1024);
    results[51] = timed(write, 1024);
    return 0;
}

void tw_cluster_main(uint32_t core) { (void)core; }
