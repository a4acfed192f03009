/* ---
op: MatMul
types: {A: T, B: int8, Y: int32}
T: [int8, uint8]
when: {K: "== 4", N: "N % 4 == 0 and N <= 16", A_sK: "== 1", A_sBATCH: ">= 0", B_sBATCH: ">= 0", a_zero_point: "== 0", b_zero_point: "== 0"}
epilogue: row
# Four columns are turned into words, then rows by four of them.
cycles:
  columns: BATCH * fours(N)
  stores: BATCH * fours(N) * M
  shifted: SHIFTS * some(STEPS) * BATCH * M * N
  behind: unless(SHIFTS * STEPS) * BATCH * M * N * FUSED
  call: some(BATCH)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Rows of one word times few columns, as heads of attention are turned: little code, which is cold most of the time. */
static void matmul_words_s8(const T *A, const int8_t *B, void *Y, int BATCH, int M, int N, int A_sBATCH, int A_sM,
                            int B_sBATCH, int B_sK, int B_sN, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    for (int batch = 0; batch < BATCH; batch++)
        for (int n = 0; n < N; n += 4) {
            uint32_t column[4];
            const int8_t *b = B + batch * B_sBATCH + n * B_sN;
            TW_UNROLL_BY(1) for (int i = 0; i < 4; i++, b += B_sN) {
                const uint32_t low = (uint8_t)b[0] | (uint32_t)(uint8_t)b[B_sK] << 8;
                column[i] = low | (uint32_t)(uint8_t)b[2 * B_sK] << 16 | (uint32_t)(uint8_t)b[3 * B_sK] << 24;
            }
            int rows = M;
            TW_KEEP(rows); /* or the loop is unrolled where there are two */
            for (int m = 0; m < rows; m++) {
                uint32_t a;
                __asm__("lw %0, %1" : "=r"(a) : "m"(*(const T(*)[4])(A + batch * A_sBATCH + m * A_sM)));
                STORE_4(&e, Y, TW_FOR_BYTES(A, tw_sdot)(0, a, column[0]), TW_FOR_BYTES(A, tw_sdot)(0, a, column[1]),
                        TW_FOR_BYTES(A, tw_sdot)(0, a, column[2]), TW_FOR_BYTES(A, tw_sdot)(0, a, column[3]),
                        (batch * M + m) * N + n, n);
            }
        }
}
