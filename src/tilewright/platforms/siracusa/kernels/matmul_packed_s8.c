/* ---
op: MatMul
types: {A: T, B: int8, C: int32, Y: int32}
T: [int8, uint8]
when: {A_sROWS: "A_sROWS == K or ROWS == 1", A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0", a_zero_point: "== 0", b_zero_point: "== 0"}
pack: {B: "K,N -> N/4,N%4,K/4,K%4"}
epilogue: row
accumulate: [K]
scratch: "min(K%4, 1)*min(ROWS, 4)*((K+3)//4)*4"
cycles: "60+((N+15)//16)*(ROWS//4*180+ROWS%4*70)+((N+3)//4)*4*(ROWS//4*(((K+3)//4)*7+60)+ROWS%4*(((K+3)//4)*2.25+20))"
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Rows are whole words; where those of A are not, they are copied. */
static void matmul_packed_s8(const T *A, const int8_t *B, const int32_t *C, void *Y, int ROWS, int K, int N,
                             void *scratch, const struct Epilogue *epilogue) {
    const int length = (K + 3) & ~3;
    int32_t panel[16], out[4 * 16];
    for (int m = 0, rows; m < ROWS; m += rows) {
        rows = ROWS - m >= 4 ? 4 : 1;
        const T *a = A + (ptrdiff_t)m * K;
        if (scratch && length != K) {
            T *padded = scratch;
            memset(padded, 0, (size_t)(rows * length));
            for (int i = 0; i < rows; i++)
                memcpy(padded + i * length, a + i * K, (size_t)K);
            a = padded;
        }
        for (int n = 0; n < N; n += 16) {
            const int count = tw_min(16, N - n);
            const int32_t *bias = tw_bias_s32(C, n, count, panel);
            tw_dot_rows(rows, count, a, length, B + (ptrdiff_t)n * length, length, length, bias, out);
            STORE(epilogue, Y, out, (ptrdiff_t)m * N + n, N, n, rows, count);
        }
    }
}
