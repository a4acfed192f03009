/* ---
op: MatMul
types: {A: float32, B: float32, C: float32, Y: float32}
when: {A_sBATCH: ">= 0", B_sBATCH: ">= 0"}
epilogue: row
accumulate: [K]
# Two columns at a time; of an odd number the last one twice.
cycles:
  products: (PAIRS := BATCH * M * twos(N)) * K
  pairs: PAIRS
  results: BATCH * M * N
  behind: BATCH * M * N * FUSED
  call: 1
--- */
#include "tilewright_soft_sums.h"

static void matmul_soft_f32(const float *A, const float *B, const float *C, void *Y, int BATCH, int M, int K, int N,
                            ptrdiff_t A_sBATCH, ptrdiff_t A_sM, ptrdiff_t A_sK, ptrdiff_t B_sBATCH, ptrdiff_t B_sK,
                            ptrdiff_t B_sN, const struct Epilogue *epilogue) {
    struct tw_soft_runs runs = {.rows = 1, .columns = 1, .length = K, .x_step = A_sK, .w_step = B_sK};
    for (int batch = 0; batch < BATCH; batch++)
        for (int m = 0; m < M; m++) {
            const ptrdiff_t row = ((ptrdiff_t)batch * M + m) * N;
            for (int n = 0; n < N; n += 2) {
                const int last = n + 1 < N ? n + 1 : n;
                float out[2] = {C ? C[n] : 0.0f, C ? C[last] : 0.0f};
                runs.w_next = (last - n) * B_sN;
                tw_soft_pair(&runs, A + batch * A_sBATCH + m * A_sM, B + batch * B_sBATCH + n * B_sN, out);
                STORE_1(epilogue, Y, out[0], row + n, n);
                if (last > n)
                    STORE_1(epilogue, Y, out[1], row + last, last);
            }
        }
}
