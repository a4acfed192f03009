/* ---
op: MatMul
types: {A: T, B: int8, C: int32, Y: int32}
T: [int8, uint8]
when: {K: "K % 4 == 0", A_sROWS: "A_sROWS == K or ROWS == 1", A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0", a_zero_point: "== 0", b_zero_point: "== 0"}
pack: {B: "K,N -> N/4,K/4,N%4,K%4"}
epilogue: row
# Blocks of four rows and four columns, which cores take in turn: words of a block, its start and results, which are
# single where there are no four columns.
cycles:
  words: (BLOCKS := steps(fours(ROWS) * fours(N), PARTS)) * words(K)
  blocks: BLOCKS
  single: BLOCKS * ragged_fours(N)
  behind: BLOCKS * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"
#include "tilewright_pool.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void matmul_pool_s8(const T *A, const int8_t *B, const int32_t *C, void *Y, int ROWS, int K, int N, int PART,
                           int PARTS, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const int words = K >> 2, across = (N + 3) >> 2, along = (ROWS + 3) >> 2, blocks = across * along;
    struct tw_pool_dot dot;
    dot.row = K;
    dot.columns = 4 * K;
    for (int block = PART; block < blocks; block += PARTS) {
        const int across_at = block % across, along_at = block / across;
        /* Of four rows of blocks, neighbours take different ones: their words lie in different groups. */
        const int down = (along_at | 3) < along ? (along_at & ~3) + ((along_at + across_at) & 3) : along_at;
        const int n = 4 * across_at, m = 4 * down;
        const int rows = tw_min(ROWS - m, 4), columns = tw_min(N - n, 4);
        const int start = (across_at + down * (words / 4 + 1)) % words;
        for (int i = 0; i < 4; i++)
            dot.a[i] = A + (m + tw_min(i, rows - 1)) * K + 4 * start;
        tw_pool_begin(&dot, C ? C + n : C, columns);
        dot.b = B + n * K + 16 * start;
        dot.first = 16 * (words - start);
        dot.second = 16 * start;
        if (((T)-1) < 0)
            tw_pool_dot_s8(&dot);
        else
            tw_pool_dot_u8(&dot);
        for (int i = 0; i < rows; i++) {
            const int32_t *sum = dot.sum + 4 * i;
            if (columns == 4)
                STORE_4(&e, Y, sum[0], sum[1], sum[2], sum[3], (m + i) * N + n, n);
            else
                STORE(epilogue, Y, sum, (m + i) * N + n, 0, n, 1, columns);
        }
    }
}
