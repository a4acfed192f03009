/* ---
op: MatMul
types: {A: float32, B: float32, Y: float32}
when: {A_sBATCH: ">= 0", B_sBATCH: ">= 0", A_sK: "A_sK == 1 or K == 1"}
epilogue: row
accumulate: [K]
scratch: "K*16*4"
# Panels of sixteen columns are copied, then multiplied four columns at a time.
cycles:
  products: BATCH * M * K * fours(N)
  panels: BATCH * K * N
  results: BATCH * M * N
  behind: BATCH * M * N * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"

/* Columns [n, n + count) of B as a packed panel, zero-padded to 16. */
static void matmul_f32_panel(const float *B, ptrdiff_t b_k, ptrdiff_t b_n, int K, int count, float *panel) {
    for (int k = 0; k < K; k++) {
        const float *b = B + k * b_k;
        if (count == 16 && b_n == 1) {
            memcpy(panel + k * 16, b, 16 * sizeof *b);
        } else {
            for (int j = 0; j < 16; j++)
                panel[k * 16 + j] = j < count ? b[j * b_n] : 0.0f;
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
            for (int m = 0; m < M;) {
                const int done = tw_block_f32(M - m, count, taps, A + batch * A_sBATCH + m * A_sM, panel, zero, out);
                STORE(epilogue, Y, out, ((ptrdiff_t)batch * M + m) * N + n, N, n, done, count);
                m += done;
            }
        }
    }
}
