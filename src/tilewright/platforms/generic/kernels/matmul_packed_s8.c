/* ---
op: MatMul
types: {A: T, B: int8, C: int32, Y: int32}
T: [int8, uint8]
when: {A_sROWS: "A_sROWS == K or ROWS == 1", A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0", a_zero_point: "== 0", b_zero_point: "== 0"}
pack: {B: "K,N -> N/4,N%4,K/16,K%16"}
epilogue: row
accumulate: [K]
scratch: "min(K%16, 1)*min(ROWS, 4)*((K+15)//16)*16"
# Four columns and four bytes at a time.
cycles:
  products: ROWS * words(K) * fours(N)
  results: ROWS * N
  behind: ROWS * N * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void matmul_packed_s8(const T *A, const int8_t *B, const int32_t *C, void *Y, int ROWS, int K, int N,
                             void *scratch, const struct Epilogue *epilogue) {
    const int length = tw_round16(K);
    T *padded = scratch;
    int32_t panel[16], out[4 * 16];
    for (int m = 0, rows; m < ROWS; m += rows) {
        rows = ROWS - m >= 4 ? 4 : 1;
        const T *a = A + (ptrdiff_t)m * K;
        ptrdiff_t a_row = K;
        /* The padding of the last rows would be read outside A. Where K needs no padding there is no scratch either. */
        if (scratch && (ptrdiff_t)(m + rows - 1) * K + length > (ptrdiff_t)ROWS * K) {
            memset(padded, 0, (size_t)rows * (size_t)length);
            for (int i = 0; i < rows; i++)
                memcpy(padded + i * length, a + i * a_row, (size_t)K * sizeof *A);
            a = padded;
            a_row = length;
        }
        for (int n = 0; n < N; n += 16) {
            const int count = tw_min(16, N - n);
            const int32_t *bias = tw_bias_s32(C, n, count, panel);
            tw_dot_rows(rows, count, a, a_row, B + (ptrdiff_t)n * length, length, length, bias, out);
            STORE(epilogue, Y, out, (ptrdiff_t)m * N + n, N, n, rows, count);
        }
    }
}
