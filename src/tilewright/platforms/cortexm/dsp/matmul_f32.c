/* ---
op: MatMul
types: {A: float32, B: float32, Y: float32}
when: {A_sBATCH: ">= 0", B_sBATCH: ">= 0", A_sK: "A_sK == 1 or K == 1"}
epilogue: row
accumulate: [K]
scratch: "K*16*4"
cycles:
  products_of_four: BATCH * whole_fours(M) * fours(N) * K
  products_of_one: BATCH * left_of_fours(M) * fours(N) * K
  blocks: BATCH * (CALLS := whole_fours(M) + left_of_fours(M)) * fours(N)
  stores: BATCH * CALLS * sixteens(N)
  packed: BATCH * K * fours(N)
  packed_single: BATCH * K * ragged_fours(N)
  results: BATCH * M*N
  behind: BATCH * M*N * FUSED
--- */
#include "tilewright_floats.h"

/* Columns of B as panels of four, filled up with zeros. */
static void matmul_f32_panel(const float *B, ptrdiff_t b_k, ptrdiff_t b_n, int K, int count, float *panel) {
    for (int j = 0; j < count; j += 4) {
        const float *b = B + j * b_n;
        for (int k = 0; k < K; k++, b += b_k, panel += 4) {
            if (count - j >= 4) {
                panel[0] = b[0], panel[1] = b[b_n], panel[2] = b[2 * b_n], panel[3] = b[3 * b_n];
            } else {
                for (int i = 0; i < 4; i++)
                    panel[i] = j + i < count ? b[i * b_n] : 0.0f;
            }
        }
    }
}

static void matmul_f32(const float *A, const float *B, void *Y, int BATCH, int M, int K, int N, ptrdiff_t A_sBATCH,
                       ptrdiff_t A_sM, ptrdiff_t B_sBATCH, ptrdiff_t B_sK, ptrdiff_t B_sN, void *scratch,
                       const struct Epilogue *epilogue) {
    static const float zero[16];
    const struct tw_taps taps = {.rows = 1, .cols = 1, .len = K, .x_pixel = A_sM};
    float *panel = scratch;
    float out[4 * 16];
    for (int batch = 0; batch < BATCH; batch++) {
        for (int n = 0; n < N; n += 16) {
            const int count = tw_min(16, N - n);
            matmul_f32_panel(B + batch * B_sBATCH + n * B_sN, B_sK, B_sN, K, count, panel);
            for (int m = 0, done; m < M; m += done) {
                const float *a = A + batch * A_sBATCH + m * A_sM;
                done = tw_floats_block(M - m, count, &taps, a, panel, (ptrdiff_t)K * 4, zero, out);
                STORE(epilogue, Y, out, ((ptrdiff_t)batch * M + m) * N + n, N, n, done, count);
            }
        }
    }
}
