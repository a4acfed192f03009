/* ---
op: MatMul
types: {A: float32, B: float32, C: float32, Y: float32}
when: {A_sROWS: "A_sROWS == K or ROWS == 1", A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0"}
pack: {B: "K,N -> N/16,K,N%16"}
epilogue: row
accumulate: [K]
# Four columns at a time.
cycles:
  products: ROWS * K * fours(N)
  results: ROWS * N
  behind: ROWS * N * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"

static void matmul_packed_f32(const float *A, const float *B, const float *C, void *Y, int ROWS, int K, int N,
                              const struct Epilogue *epilogue) {
    const struct tw_taps taps = {.rows = 1, .cols = 1, .len = K, .x_pixel = K};
    float panel[16], out[4 * 16];
    for (int first = 0; first < ROWS; first += 32) { /* few enough rows for A to stay in the first cache */
        const int last = tw_min(first + 32, ROWS);
        for (int n = 0; n < N; n += 16) {
            const int count = tw_min(16, N - n);
            const float *bias = tw_bias_f32(C, n, count, panel);
            for (int m = first; m < last;) {
                const float *a = A + (ptrdiff_t)m * K;
                const int done = tw_block_f32(last - m, count, taps, a, B + (ptrdiff_t)n * K, bias, out);
                STORE(epilogue, Y, out, (ptrdiff_t)m * N + n, N, n, done, count);
                m += done;
            }
        }
    }
}
