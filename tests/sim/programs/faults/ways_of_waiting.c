/* Ways in which a program can learn that transfers and jobs have ended; all of them are right. */
#include "chip.h"
#include "npu.h"

#define SIZE 256
#define JOBS 4
#define UDMA 0x1A102000u
#define HYPER (UDMA + 0x280u)
IN_L2 static volatile uint8_t source[2 * SIZE], from_l3[SIZE];
IN_L1 static volatile uint8_t first[SIZE], second[SIZE];
IN_L1 static volatile uint8_t npu_other[PIXELS * CHANNELS];

/* Two transfers that share a counter; only the second one asks for an event. */
static uint32_t one_event_for_two(void) {
    uint32_t id = REGISTER(DMA);
    REGISTER(DMA) = SIZE | 1u << 17 | 1u << 18;
    REGISTER(DMA) = (uint32_t)first;
    REGISTER(DMA) = (uint32_t)source;
    REGISTER(DMA) = SIZE | 1u << 17 | 1u << 18 | 1u << 20;
    REGISTER(DMA) = (uint32_t)second;
    REGISTER(DMA) = (uint32_t)(source + SIZE);
    (void)wait_for_event();
    dma_free(id);
    return sum(first, SIZE) + sum(second, SIZE);
}

/* The event is looked at and not slept for. */
static uint32_t poll_for_event(void) {
    uint32_t id = dma(first, source, SIZE, to_l1);
    while ((REGISTER(EVENTS + 0x1C) & DMA_EVENT) == 0)
        ;
    REGISTER(EVENTS + 0x28) = DMA_EVENT;
    dma_free(id);
    return sum(first, SIZE);
}

/* One job after the other on the same bytes; only the last one is waited for. */
static uint32_t queue_of_jobs(void) {
    npu_fill(0);
    for (uint32_t i = 0; i < JOBS; i++)
        npu_start();
    while (REGISTER(NPU + 0xC) != 0)
        ;
    return npu_output[0];
}

/* There are registers for two jobs: who gets some for a third one knows that the first has ended. */
static uint32_t registers_of_an_ended_job(void) {
    npu_output[0] = 0;
    npu_start();
    npu_start_for(npu_other);
    npu_start_for(npu_other);
    const uint32_t found = npu_output[0];
    while (REGISTER(NPU + 0xC) != 0)
        ;
    return found;
}

/* To the memory outside and back. */
static uint32_t there_and_back(void) {
    REGISTER(UDMA) = 1u << 4;
    REGISTER(HYPER + 0x0C) = (uint32_t)source;
    REGISTER(HYPER + 0x10) = SIZE;
    REGISTER(HYPER + 0x1C) = 0;
    REGISTER(HYPER + 0x14) = 1u << 4;
    while (REGISTER(HYPER + 0x24) != 0)
        ;
    REGISTER(HYPER + 0x00) = (uint32_t)from_l3;
    REGISTER(HYPER + 0x04) = SIZE;
    REGISTER(HYPER + 0x08) = 1u << 4;
    while (REGISTER(HYPER + 0x24) != 0)
        ;
    return sum(from_l3, SIZE);
}

void program(uint32_t core) {
    if (core != 0)
        return;
    for (uint32_t i = 0; i < 2 * SIZE; i++)
        source[i] = 1;
    uint32_t total = one_event_for_two();
    total += poll_for_event();
    total += there_and_back();
    const uint32_t queued = queue_of_jobs();
    result = registers_of_an_ended_job() == queued ? (total == 4 * SIZE) + queued : 0;
}
