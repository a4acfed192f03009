/* Transfers of all shapes; the test looks at the bytes. */
#include "devices.h"

enum { inward = 1 << 17, increment = 1 << 18, far_lines = 1 << 19, event = 1 << 20, near_lines = 1 << 23 };

IN_L1 uint8_t near[0x4000];
IN_L2 uint8_t far[0x4000];

static uint32_t start(uint32_t command, uint32_t at, uint32_t far_at) {
    uint32_t id = REGISTER(DMA);
    REGISTER(DMA) = command | increment | event;
    REGISTER(DMA) = (uint32_t)near + at;
    REGISTER(DMA) = (uint32_t)far + far_at;
    return id;
}
static void lines(uint32_t length, uint32_t stride) {
    REGISTER(DMA) = length;
    REGISTER(DMA) = stride;
}

void program(uint32_t core) {
    if (core != 0)
        return;
    for (uint32_t i = 0; i < sizeof far; i++) {
        far[i] = (uint8_t)(i * 7 + (i >> 8));
        near[i] = (uint8_t)(i * 13 + 5 + (i >> 7));
    }
    uint32_t id = start(1000 | inward, 0, 0x10);
    dma_wait(id);
    id = start(700, 0x400, 0x2000);
    dma_wait(id);
    id = start(301 | inward, 0x801, 0x403); /* from and to odd addresses */
    dma_wait(id);
    id = start(13 * 10 | inward | far_lines, 0xa00, 0x600);
    lines(13, 100);
    dma_wait(id);
    id = start(600 | near_lines, 0xc00, 0x2400);
    lines(300, 400);
    dma_wait(id);
    id = start(24 * 9 | inward | far_lines | near_lines, 0x1000, 0x900);
    lines(24, 50);
    lines(36, 64);
    dma_wait(id);
    id = start(100 | far_lines, 0x1400, 0x2800); /* the last line is short */
    lines(48, 80);
    dma_wait(id);
}
