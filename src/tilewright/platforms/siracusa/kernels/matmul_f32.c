/* ---
op: MatMul
types: {A: float32, B: float32, Y: float32}
when: {A_sBATCH: ">= 0", B_sBATCH: ">= 0", A_sK: "A_sK == 1 or K == 1"}
epilogue: row
accumulate: [K]
scratch: "K*16"
cycles: "BATCH*(((M+3)//4)*((N+3)//4)*(K*31 + 170) + M*N*14 + K*N*4) + 100"
--- */
#include "tilewright_kernel.h"

/* Four columns of B are read where they are if they lie side by side, else they are copied. */
static void matmul_f32(const float *A, const float *B, void *Y, int BATCH, int M, int K, int N, ptrdiff_t A_sBATCH,
                       ptrdiff_t A_sM, ptrdiff_t B_sBATCH, ptrdiff_t B_sK, ptrdiff_t B_sN, void *scratch,
                       const struct Epilogue *epilogue) {
    static const float zero[4];
    float *panel = scratch;
    float out[4 * 16];
    struct tw_runs runs = {.words = K, .rows = 1};
    for (int batch = 0; batch < BATCH; batch++) {
        for (int n = 0; n < N; n += 4) {
            const int count = tw_min(4, N - n), in_place = B_sN == 1 && count == 4;
            const float *b = B + batch * B_sBATCH + n * B_sN;
            for (int k = 0; k < K && !in_place; k++)
                for (int j = 0; j < 4; j++)
                    panel[k * 4 + j] = b[k * B_sK + tw_min(j, count - 1) * B_sN];
            for (int m = 0; m < M; m += 4) {
                const int rows = tw_min(4, M - m);
                for (int i = 0; i < 4; i++) /* rows that are not there are computed as the last one again */
                    runs.a[i] = A + batch * A_sBATCH + (m + tw_min(i, rows - 1)) * A_sM;
                tw_float_runs(&runs, in_place ? b : panel, in_place ? B_sK : 4, zero, out);
                STORE(epilogue, Y, out, (batch * M + m) * N + n, N, n, rows, count);
            }
        }
    }
}
