/* ---
op: MatMul
types: {A: float32, B: float32, C: float32, Y: float32}
when: {A_sROWS: "A_sROWS == K or ROWS == 1", A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0"}
pack: {B: "K,N -> N/4,K,N%4"}
epilogue: row
accumulate: [K]
cycles:
  products_of_four: whole_fours(ROWS) * fours(N) * K
  products_of_one: left_of_fours(ROWS) * fours(N) * K
  blocks: (CALLS := whole_fours(ROWS) + left_of_fours(ROWS)) * fours(N)
  stores: CALLS * sixteens(N)
  results: ROWS * N
  behind: ROWS * N * FUSED
--- */
#include "tilewright_floats.h"

static void matmul_packed_f32(const float *A, const float *B, const float *C, void *Y, int ROWS, int K, int N,
                              const struct Epilogue *epilogue) {
    const struct tw_taps taps = {.rows = 1, .cols = 1, .len = K, .x_pixel = K};
    float panel[16], out[4 * 16];
    for (int n = 0; n < N; n += 16) {
        const int count = tw_min(16, N - n);
        const float *bias = tw_bias_f32(C, n, count, panel);
        for (int m = 0, done; m < ROWS; m += done) {
            const float *a = A + (ptrdiff_t)m * K, *b = B + (ptrdiff_t)n * K;
            done = tw_floats_block(ROWS - m, count, &taps, a, b, (ptrdiff_t)K * 4, bias, out);
            STORE(epilogue, Y, out, (ptrdiff_t)m * N + n, N, n, done, count);
        }
    }
}
