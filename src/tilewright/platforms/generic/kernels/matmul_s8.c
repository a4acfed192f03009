/* ---
op: MatMul
types: {A: T, B: U, Y: int32}
T: [int8, uint8]
U: [int8, uint8]
when: {A_sBATCH: ">= 0", B_sBATCH: ">= 0", A_sK: "A_sK == 1 or K == 1"}
epilogue: row
accumulate: [K]
scratch: "20*((K+15)//16)*16"
# Panels of sixteen columns are copied, then multiplied, four columns and four bytes at a time.
cycles:
  products: BATCH * M * words(K) * fours(N)
  panels: BATCH * K * N
  results: BATCH * M * N
  behind: BATCH * M * N * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

/* What is subtracted from B so that it is signed: unsigned values lie around 128. */
#define MIDDLE ((U)(-1) > 0 ? 128 : 0)

/* `count` columns of B as zero-padded rows of a panel, and their sums. Returns the panel, or B where it will do. */
static const int8_t *matmul_s8_panel(const U *B, ptrdiff_t b_k, ptrdiff_t b_n, int K, int count, int8_t *panel,
                                     int32_t *sums) {
    const int length = tw_round16(K);
    const int in_place = MIDDLE == 0 && b_k == 1 && b_n == length && count == 16;
    if (!in_place)
        memset(panel, 0, (size_t)length * 16);
    for (int j = 0; j < count; j++) {
        const int8_t *row = in_place ? (const int8_t *)B + j * b_n : panel + j * length;
        int32_t sum = 0;
        for (int k = 0; k < K && !in_place; k++)
            panel[j * length + k] = (int8_t)(B[k * b_k + j * b_n] - MIDDLE);
        for (int k = 0; k < length; k++)
            sum += row[k];
        sums[j] = sum;
    }
    return in_place ? (const int8_t *)B : panel;
}

/* Zero points: (a - za) . (b - zb) = a . b - za * sum(b) - zb * sum(a) + K * za * zb. */
static void matmul_s8(const T *A, const U *B, void *Y, int BATCH, int M, int K, int N, ptrdiff_t A_sBATCH,
                      ptrdiff_t A_sM, ptrdiff_t B_sBATCH, ptrdiff_t B_sK, ptrdiff_t B_sN, int a_zero_point,
                      int b_zero_point, void *scratch, const struct Epilogue *epilogue) {
    const int length = tw_round16(K);
    const int b_zero = b_zero_point - MIDDLE;
    int8_t *panel = scratch;
    T *padded = (T *)scratch + 16 * length;
    int32_t bias[16], out[4 * 16];
    memset(bias, 0, sizeof bias);
    memset(padded, 0, (size_t)length * 4);
    for (int batch = 0; batch < BATCH; batch++) {
        for (int n = 0; n < N; n += 16) {
            const int count = tw_min(16, N - n);
            const int8_t *b = matmul_s8_panel(B + batch * B_sBATCH + n * B_sN, B_sK, B_sN, K, count, panel, bias);
            for (int j = 0; j < count; j++)
                bias[j] = a_zero_point * (K * b_zero - bias[j]);
            for (int m = 0, rows; m < M; m += rows) {
                rows = M - m >= 4 ? 4 : 1;
                const T *a = A + batch * A_sBATCH + m * A_sM;
                ptrdiff_t a_row = A_sM;
                if (K != length) {
                    for (int i = 0; i < rows; i++)
                        memcpy(padded + i * length, a + i * a_row, (size_t)K);
                    a = padded;
                    a_row = length;
                }
                tw_dot_rows(rows, count, a, a_row, b, length, length, bias, out);
                for (int i = 0; i < rows; i++) {
                    int32_t sum = 0;
                    if (b_zero) {
                        for (int k = 0; k < K; k++)
                            sum += a[i * a_row + k];
                        for (int j = 0; j < count; j++) /* the others were not computed */
                            out[i * 16 + j] -= b_zero * sum;
                    }
                }
                STORE(epilogue, Y, out, ((ptrdiff_t)batch * M + m) * N + n, N, n, rows, count);
            }
        }
    }
}
#undef MIDDLE
