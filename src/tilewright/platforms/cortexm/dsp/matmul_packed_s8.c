/* ---
op: MatMul
types: {A: T, B: int8, C: int32, Y: int32}
T: [int8, uint8]
when: {A_sROWS: "A_sROWS == K or ROWS == 1", A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0", a_zero_point: "== 0", b_zero_point: "== 0"}
pack: {B: "K,N -> N/2,K/4,N%2,K%4"}
epilogue: row
accumulate: [K]
scratch: "(2+min(ROWS, 2)//2*4)*4*((K+3)//4) + 12"
cycles:
  words_of_three_rows: twos(N) * (whole_threes(ROWS) + several(left_of_threes(ROWS))) * words(K)
  words_of_one_row: twos(N) * one(left_of_threes(ROWS)) * words(K)
  blocks: sixteens(N) * threes(ROWS)
  widened: ROWS * words(K)
  ragged_rows: ROWS * ragged_fours(K)
  results: ROWS * N
  behind: ROWS * N * FUSED
--- */
#include "tilewright_smlad.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void matmul_packed_s8(const T *A, const int8_t *B, const int32_t *C, void *Y, int ROWS, int K, int N,
                             void *scratch, const struct Epilogue *epilogue) {
    const int quads = (K + 3) / 4;
    T *const rest = scratch;
    uint32_t *const wide = (uint32_t *)scratch + 3;
    int32_t panel[16], out[3 * 16];
    for (int m = 0, rows; m < ROWS; m += rows) {
        rows = tw_min(3, ROWS - m);
        const int many = tw_widen_rows(wide, A + (ptrdiff_t)m * K, K, rows, K, rest);
        for (int n = 0; n < N; n += 16) {
            const int count = tw_min(16, N - n);
            const int32_t *bias = tw_smlad_bias(C, n, count, panel);
            tw_smlad_block(many, wide, B + (ptrdiff_t)n * quads * 4, quads, count, bias, out);
            STORE(epilogue, Y, out, (ptrdiff_t)m * N + n, N, n, rows, count);
        }
    }
}
