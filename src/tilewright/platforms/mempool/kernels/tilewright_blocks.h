/* Blocks of four rows and four columns of a matrix product, which cores take in turn. */
#ifndef TILEWRIGHT_BLOCKS_H
#define TILEWRIGHT_BLOCKS_H

#include "tilewright_pool.h"

struct tw_pool_blocks {
    const char *rows, *columns; /* the operands, columns packed four by four */
    const int32_t *bias;
    int bytes, height, width; /* of a row, and the size of the result */
};

/* Where a block begins, and how many rows and columns it has. */
struct tw_pool_block {
    int m, n, rows, columns;
};

static inline int tw_pool_block_count(const struct tw_pool_blocks *all) {
    return ((all->width + 3) >> 2) * ((all->height + 3) >> 2);
}

/* A block, and the sums to be made of it. */
static inline __attribute__((always_inline)) struct tw_pool_block tw_pool_block(const struct tw_pool_blocks *all,
                                                                                int block, struct tw_pool_dot *dot) {
    const int words = all->bytes >> 2, across = (all->width + 3) >> 2, along = (all->height + 3) >> 2;
    const int across_at = block % across, along_at = block / across;
    /* Of four rows of blocks, neighbours take different ones: their words lie in different groups. */
    const int down = (along_at | 3) < along ? (along_at & ~3) + ((along_at + across_at) & 3) : along_at;
    const int n = 4 * across_at, m = 4 * down;
    const int rows = m + 4 < all->height ? 4 : all->height - m, columns = n + 4 < all->width ? 4 : all->width - n;
    const int start = (across_at + down * (words / 4 + 1)) % words;
    for (int i = 0; i < 4; i++)
        dot->a[i] = all->rows + (m + (i < rows ? i : rows - 1)) * all->bytes + 4 * start;
    tw_pool_begin(dot, all->bias ? all->bias + n : all->bias, columns);
    dot->b = all->columns + n * all->bytes + 16 * start;
    dot->first = 16 * (words - start);
    dot->second = 16 * start;
    return (struct tw_pool_block){m, n, rows, columns};
}

/* Behind each block; `epilogue`, `e`, `Y` and `N` are the kernel's own. */
#define TW_STORE_BLOCK(at, sums)                                                                                       \
    for (int i = 0; i < (at).rows; i++) {                                                                              \
        const int32_t *const sum = (sums) + 4 * i;                                                                     \
        const int place = ((at).m + i) * N + (at).n;                                                                   \
        if ((at).columns == 4)                                                                                         \
            STORE_4(&e, Y, sum[0], sum[1], sum[2], sum[3], place, (at).n);                                             \
        else                                                                                                           \
            STORE(epilogue, Y, sum, place, 0, (at).n, 1, (at).columns);                                                \
    }

#endif
