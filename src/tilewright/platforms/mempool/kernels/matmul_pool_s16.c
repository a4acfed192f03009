/* ---
op: MatMul
types: {A: int16, B: int16, C: int32, Y: int32}
when: {K: "K % 2 == 0", A_sROWS: "A_sROWS == K or ROWS == 1", A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0", a_zero_point: "== 0", b_zero_point: "== 0"}
pack: {B: "K,N -> N/4,K/2,N%4,K%2"}
epilogue: row
# As of products of bytes (matmul_pool_s8.c), with two products in a word.
cycles:
  words: (BLOCKS := steps(fours(ROWS) * fours(N), PARTS)) * twos(K)
  blocks: BLOCKS
  single: BLOCKS * ragged_fours(N)
  behind: BLOCKS * FUSED
  call: some(M)
--- */
#include "tilewright_blocks.h"
#include "tilewright_kernel.h"

static void matmul_pool_s16(const int16_t *A, const int16_t *B, const int32_t *C, void *Y, int ROWS, int K, int N,
                            int PART, int PARTS, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const struct tw_pool_blocks all = {(const char *)A, (const char *)B, C, 2 * K, ROWS, N};
    const int blocks = tw_pool_block_count(&all);
    struct tw_pool_dot dot;
    dot.row = 2 * K;
    dot.columns = 4 * dot.row;
    for (int block = PART; block < blocks; block += PARTS) {
        const struct tw_pool_block at = tw_pool_block(&all, block, &dot);
        tw_pool_dot_s16(&dot);
        TW_STORE_BLOCK(at, dot.sum);
    }
}
