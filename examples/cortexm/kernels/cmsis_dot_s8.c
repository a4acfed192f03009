/* ---
op: MatMul
types: {A: int8, B: int8, Y: int32}
when: {BATCH: "== 1", A_sK: "A_sK == 1 or K == 1"}
pack: {B: "K,N -> N,K"}
epilogue: row
cycles: "M*N*(K/2+20)/8"
--- */
/* By CMSIS-DSP: a row of A and a column of B, which lies in one piece, at a time. */
#include "tilewright_kernel.h"
#include <arm_math.h>

static void cmsis_dot_s8(const int8_t *A, const int8_t *B, int32_t *Y, int M, int N, int K,
                         const struct Epilogue *epilogue) {
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            int32_t sum = 0;
            arm_dot_prod_q7(A + m * K, B + n * K, (uint32_t)K, &sum);
            STORE_1(epilogue, Y, sum, m * N + n, n);
        }
}
