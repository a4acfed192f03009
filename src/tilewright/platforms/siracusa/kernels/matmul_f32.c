/* ---
op: MatMul
types: {A: float32, B: float32, Y: float32}
when: {A_sBATCH: ">= 0", B_sBATCH: ">= 0", A_sK: "A_sK == 1 or K == 1"}
epilogue: row
accumulate: [K]
scratch: "K*16"
# Four rows and four columns at a time, and rows that are left one by one; cores wait for the unit that they share. Columns
# are copied where they do not lie side by side, and where they are the last few, which are stored one by one. Results are
# loaded first where they are parts of sums.
cycles:
  products: BATCH * fours(N) * whole_fours(M) * K
  meetings: FPU_OTHERS * BATCH * fours(N) * M * K
  row_products: BATCH * fours(N) * left_of_fours(M) * K
  blocks: BATCH * (fours(N) * (whole_fours(M) + left_of_fours(M)) + ragged_fours(N) * M)
  copied: BATCH * K * (fours(N) * unless(one(B_sN)) + ragged_fours(N) * one(B_sN))
  results: (RESULTS := BATCH * M * N) + SUMS * RESULTS
  behind: RESULTS * FUSED
  call: some(M)
--- */
#include "tilewright_floats.h"

/* Four columns of B side by side, the last one again in place of those that are missing. */
TW_APART void matmul_f32_panel(const float *b, int b_k, int b_n, int K, int count, float *panel) {
    const float *b1 = b + tw_min(1, count - 1) * b_n, *b2 = b + tw_min(2, count - 1) * b_n;
    const float *b3 = b + (count - 1) * b_n;
    TW_UNROLL_BY(2) for (int k = 0; k < K; k++, panel += 4) {
        const float x0 = b[k * b_k], x1 = b1[k * b_k], x2 = b2[k * b_k], x3 = b3[k * b_k];
        panel[0] = x0, panel[1] = x1, panel[2] = x2, panel[3] = x3;
    }
}

/* Four columns of B are read where they are if they lie side by side, else they are copied. */
static void matmul_f32(const float *A, const float *B, void *Y, int BATCH, int M, int K, int N, int A_sBATCH, int A_sM,
                       int B_sBATCH, int B_sK, int B_sN, void *scratch, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const float zero[4] = {0};
    float out[4 * 16];
    struct tw_float_lines runs = {.words = K, .rows = 1};
    for (int batch = 0; batch < BATCH; batch++) {
        for (int n = 0; n < N; n += 4) {
            const int count = tw_min(4, N - n), in_place = B_sN == 1 && count == 4;
            const float *b = B + batch * B_sBATCH + n * B_sN;
            if (!in_place)
                matmul_f32_panel(b, B_sK, B_sN, K, count, scratch);
            for (int m = 0; m < M; m += 4) {
                const int rows = tw_min(4, M - m), at = (batch * M + m) * N + n;
                for (int i = 0; i < rows; i++)
                    runs.a[i] = A + batch * A_sBATCH + (m + i) * A_sM;
                tw_float_runs(&runs, rows, 1, in_place ? b : scratch, in_place ? B_sK : 4, zero, out);
                if (count < 4) {
                    STORE(epilogue, Y, out, at, N, n, rows, count);
                } else {
                    TW_UNROLL_BY(1)
                    for (int i = 0; i < rows; i++)
                        STORE_4(&e, Y, out[16 * i], out[16 * i + 1], out[16 * i + 2], out[16 * i + 3], at + i * N, n);
                }
            }
        }
    }
}
