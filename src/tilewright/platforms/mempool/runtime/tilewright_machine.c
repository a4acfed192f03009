#include "tilewright_machine.h"

#include <string.h>

/* Registers of the DMA. A load of START starts a copy; DONE is 1 when the last one is complete. */
#define SOURCE (TW_DMA + 0x00)
#define TARGET (TW_DMA + 0x04)
#define BYTES (TW_DMA + 0x08)
#define START (TW_DMA + 0x14)
#define DONE (TW_DMA + 0x18)

#define TILES_PER_GROUP (TW_HARTS / TW_CORES_PER_TILE / TW_GROUPS)

/* The words to meet by lie in the last bytes that a tile has in a row: who of the tile is there, which tiles of the
 * group, whose first tile has that word, and which groups, in the first tile of all. */
static int *words_of(int tile) { return (int *)((tile + 1) * TW_CORES_PER_TILE * TW_OWN) - 4; }

/* Counts a core in; whether it is the last one of so many. */
static inline int last_of(int *count, int of) {
    int before;
    __asm__ volatile(".insn r 0x2F, 2, 0, %0, %2, %1" : "=r"(before) : "r"(1), "r"(count) : "memory"); /* amoadd.w */
    if (before != of - 1)
        return 0;
    *count = 0;
    return 1;
}

/* Cores of a tile, tiles of a group, groups: so no bank has to count all of them. Everybody sleeps until the last one
 * wakes all. */
__attribute__((noinline, section(".text.meet"))) void tw_meet(int core) {
    const int tile = core / TW_CORES_PER_TILE, first = tile - tile % TILES_PER_GROUP;
    __asm__ volatile("fence" ::: "memory");
    if (last_of(words_of(tile), TW_CORES_PER_TILE) && last_of(words_of(first) + 1, TILES_PER_GROUP) &&
        last_of(words_of(0) + 2, TW_GROUPS)) {
        __asm__ volatile("fence" ::: "memory");
        TW_REGISTER(TW_CONTROL + 0x28) = (1u << TW_GROUPS) - 1;
    }
    __asm__ volatile("wfi" ::: "memory");
}

void tw_dma_wait(int channel) {
    (void)channel; /* copies are made one after the other */
    while (!TW_REGISTER(DONE))
        ;
    __asm__ volatile("fence" ::: "memory");
}

static int in_l1(const void *address) { return (uintptr_t)address < 0x40000000u; }

/* The DMA does not copy within L1: the cores do, each some of the rows, or of a row where there are few. */
static void copy_together(unsigned char *to, const unsigned char *from, size_t bytes, int rows, ptrdiff_t to_row,
                          ptrdiff_t from_row, int planes, ptrdiff_t to_plane, ptrdiff_t from_plane) {
    const int core = tw_core(), runs = planes * rows, parts = runs > 0 && runs < TW_HARTS ? TW_HARTS / runs : 1;
    const size_t part = (bytes + (size_t)parts - 1) / (size_t)parts;
    tw_meet(core);
    for (int turn = core; turn < runs * parts; turn += TW_HARTS) {
        const int run = turn / parts, plane = run / rows, row = run % rows;
        const size_t first = (size_t)(turn % parts) * part, left = first < bytes ? bytes - first : 0;
        memmove(to + plane * to_plane + row * to_row + first, from + plane * from_plane + row * from_row + first,
                left < part ? left : part);
    }
    tw_meet(core);
}

static void run(unsigned char *to, const unsigned char *from, size_t bytes) {
    TW_REGISTER(SOURCE) = (uint32_t)from;
    TW_REGISTER(TARGET) = (uint32_t)to;
    TW_REGISTER(BYTES) = bytes;
    __asm__ volatile("fence" ::: "memory");
    (void)TW_REGISTER(START);
}

void tw_dma_start(int channel, void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row, ptrdiff_t from_row,
                  int planes, ptrdiff_t to_plane, ptrdiff_t from_plane) {
    (void)channel;
    if (in_l1(to) && in_l1(from)) {
        copy_together(to, from, bytes, rows, to_row, from_row, planes, to_plane, from_plane);
        return;
    }
    if (bytes == 0)
        return;
    if (to_row == (ptrdiff_t)bytes && from_row == (ptrdiff_t)bytes) {
        bytes *= (size_t)rows;
        rows = 1;
    }
    for (int plane = 0; plane < planes; plane++)
        for (int row = 0; row < rows; row++)
            run((unsigned char *)to + plane * to_plane + row * to_row,
                (const unsigned char *)from + plane * from_plane + row * from_row, bytes);
}
