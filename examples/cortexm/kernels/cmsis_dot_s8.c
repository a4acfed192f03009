/* ---
op: MatMul
types: {A: int8, B: int8, Y: int32}
when: {A_sROWS: "A_sROWS == K or ROWS == 1", A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0", a_zero_point: "== 0", b_zero_point: "== 0"}
pack: {B: "K,N -> N,K"}
epilogue: row
cycles: "ROWS*N*(K/2+20)/8"
--- */
/* By CMSIS-DSP: a row of A and a column of B, which lies in one piece, at a time. */
#include "tilewright_kernel.h"
#include <arm_math.h>

static void cmsis_dot_s8(const int8_t *A, const int8_t *B, int32_t *Y, int ROWS, int N, int K,
                         const struct Epilogue *epilogue) {
    for (int row = 0; row < ROWS; row++)
        for (int n = 0; n < N; n++) {
            int32_t sum = 0;
            arm_dot_prod_q7(A + row * K, B + n * K, (uint32_t)K, &sum);
            STORE_1(epilogue, Y, sum, row * N + n, n);
        }
}
