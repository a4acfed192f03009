/* ---
op: MatMul
types: {A: float32, B: float32, C: float32, Y: float32}
when: {A_sROWS: "A_sROWS == K or ROWS == 1", A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0"}
pack: {B: "K,N -> N/4,K,N%4"}
epilogue: row
accumulate: [K]
# Four rows and four columns at a time, and rows that are left one by one; cores wait for the unit that they share. 16 columns
# are stored at once, or the last few one by one.
cycles:
  products: (FOURS := whole_fours(ROWS) * fours(N)) * K
  meetings: FPU_OTHERS * FOURS * K
  row_products: (ROW_FOURS := left_of_fours(ROWS) * fours(N)) * K
  blocks: FOURS + ROW_FOURS
  results: ROWS * N
  single_columns: ragged_fours(N) * ROWS
  behind: ROWS * N * FUSED
  call: some(ROWS)
--- */
#include "tilewright_floats.h"

static void matmul_packed_f32(const float *A, const float *B, const float *C, void *Y, int ROWS, int K, int N,
                              const struct Epilogue *epilogue) {
    float panel[16] = {0}, out[4 * 16];
    struct tw_float_lines runs = {.words = K, .rows = 1};
    for (int m = 0; m < ROWS; m += 4) {
        const int rows = tw_min(4, ROWS - m);
        for (int i = 0; i < rows; i++)
            runs.a[i] = A + (m + i) * K;
        for (int n = 0; n < N; n += 16) {
            const int count = tw_min(16, N - n);
            const float *bias = tw_float_biases(C, n, count, panel);
            tw_float_runs(&runs, rows, (count + 3) / 4, B + n * K, 4, bias, out);
            STORE(epilogue, Y, out, m * N + n, N, n, rows, count);
        }
    }
}
