/* ---
op: MatMul
types: {A: float32, B: float32, C: float32, Y: float32}
when: {A_sROWS: "A_sROWS == K or ROWS == 1", A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0"}
pack: {B: "K,N -> N/4,K,N%4"}
epilogue: row
accumulate: [K]
# Four rows and four columns at a time; 16 columns are stored at once, or the last few one by one.
cycles:
  products: fours(ROWS) * fours(N) * K
  blocks: fours(ROWS) * fours(N)
  panels: fours(ROWS) * sixteens(N)
  results: ROWS * N
  single_columns: ragged_fours(N) * ROWS
  behind: ROWS * N * FUSED
  call: some(ROWS)
--- */
#include "tilewright_kernel.h"

static void matmul_packed_f32(const float *A, const float *B, const float *C, void *Y, int ROWS, int K, int N,
                              const struct Epilogue *epilogue) {
    float panel[16], out[4 * 16];
    struct tw_runs runs = {.words = K, .rows = 1};
    for (int m = 0; m < ROWS; m += 4) {
        const int rows = tw_min(4, ROWS - m);
        for (int i = 0; i < 4; i++) /* rows that are not there are computed as the last one again */
            runs.a[i] = A + (m + tw_min(i, rows - 1)) * K;
        for (int n = 0; n < N; n += 16) {
            const int count = tw_min(16, N - n);
            const float *bias = tw_bias_f32(C, n, count, panel);
            for (int j = 0; j < count; j += 4)
                tw_float_runs(&runs, B + (n + j) * K, 4, bias + j, out + j);
            STORE(epilogue, Y, out, m * N + n, N, n, rows, count);
        }
    }
}
