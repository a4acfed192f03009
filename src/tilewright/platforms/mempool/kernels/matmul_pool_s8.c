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
#include "tilewright_blocks.h"
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void matmul_pool_s8(const T *A, const int8_t *B, const int32_t *C, void *Y, int ROWS, int K, int N, int PART,
                           int PARTS, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const struct tw_pool_blocks all = {(const char *)A, (const char *)B, C, K, ROWS, N};
    const int blocks = tw_pool_block_count(&all);
    struct tw_pool_dot dot;
    dot.row = K;
    dot.columns = 4 * dot.row;
    for (int block = PART; block < blocks; block += PARTS) {
        const struct tw_pool_block at = tw_pool_block(&all, block, &dot);
        if (((T)-1) < 0)
            tw_pool_dot_s8(&dot);
        else
            tw_pool_dot_u8(&dot);
        TW_STORE_BLOCK(at, dot.sum);
    }
}
