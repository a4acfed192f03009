/* Counters of transfers: which one is given, what the status says, and cores that wait for one. */
#include "devices.h"

IN_L1 uint8_t near[0x4000];
IN_L2 uint8_t far[0x4000];

static void command(uint32_t at, uint32_t size, uint32_t flags) {
    REGISTER(DMA) = size | 1u << 17 | 1u << 18 | flags;
    REGISTER(DMA) = (uint32_t)near + at;
    REGISTER(DMA) = (uint32_t)far + at;
}

/* The same by stores that move their pointer on (p.sw); returns how far. */
static uint32_t moving_command(uint32_t at, uint32_t size) {
    const uint32_t words[] = {size | 1u << 17 | 1u << 18, (uint32_t)near + at, (uint32_t)far + at};
    uint32_t moved = 0;
    for (int i = 0; i < 3; i++) {
        uint32_t pointer = DMA;
        __asm__ volatile(".insn s 0x2B, 2, %1, 4(%0)" : "+r"(pointer) : "r"(words[i]) : "memory");
        moved += pointer - DMA;
    }
    return moved;
}

void program(uint32_t core) {
    enable_caches();
    if (core == 0)
        for (uint32_t i = 0; i < sizeof far; i++)
            far[i] = 1;
    else
        set_mask(BARRIER_EVENT); /* events of transfers go to all cores */
    barrier();
    if (core == 0) {
        uint32_t first = REGISTER(DMA), second = REGISTER(DMA);
        results[0] = first;
        results[1] = second;
        results[2] = REGISTER(DMA + 4);
        dma_free(first);
        results[3] = REGISTER(DMA); /* the lowest that is free */
        /* Two commands of one counter, without an event. */
        uint32_t since = 0;
        for (int warm = 0; warm < 2; warm++) {
            since = cycles();
            command(0, 2048, 0);
            results[4] = cycles() - since;
            command(2048, 2048, 0);
            while (REGISTER(DMA + 4) & 1)
                ;
            results[5] = cycles() - since;
        }
        results[6] = REGISTER(EVENTS + 0x1c) & DMA_EVENT;
        dma_free(0);
        dma_free(second);

        /* As many commands as wait in queues, and more: the core waits for room. */
        uint32_t id = REGISTER(DMA);
        since = cycles();
        for (uint32_t i = 0; i < 20; i++)
            command(512 * i, 512, i == 19 ? 1u << 20 : 0);
        results[7] = cycles() - since;
        dma_wait(id);
        results[8] = cycles() - since;
        id = REGISTER(DMA);
        for (uint32_t i = 0; i < 20; i++)
            results[12] += moving_command(512 * i, 512);
        while (REGISTER(DMA + 4) & 1u << id)
            ;
        dma_free(id);

        /* The interrupt of a transfer is an event of its own. */
        id = REGISTER(DMA);
        REGISTER(EVENTS + 0x28) = ~0u;
        command(0, 64, 1u << 21);
        idle(100);
        results[9] = REGISTER(EVENTS + 0x1c);
        REGISTER(EVENTS + 0x28) = ~0u;
        dma_wait(id);
        for (int i = 0; i < 16; i++)
            results[16 + i] = REGISTER(DMA);
    }
    barrier();
    if (core == 1) {
        uint32_t since = cycles();
        results[10] = REGISTER(DMA); /* none is free */
        results[11] = cycles() - since;
    } else if (core == 0) {
        idle(500);
        dma_free(9);
    }
    barrier();
}
