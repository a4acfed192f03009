/* ---
op: MatMul
types: {A: T, B: U, Y: int32}
T: [int8, uint8]
U: [int8, uint8]
when: {A_sBATCH: ">= 0", B_sBATCH: ">= 0", A_sK: "A_sK == 1 or K == 1"}
epilogue: row
accumulate: [K]
scratch: "88*((K+3)//4) + 12"
cycles:
  words_of_three_rows: BATCH * twos(N) * (whole_threes(M) + several(left_of_threes(M))) * words(K)
  words_of_one_row: BATCH * twos(N) * one(left_of_threes(M)) * words(K)
  blocks: BATCH * (BLOCKS := sixteens(N)) * threes(M) * (some(K) + ragged_fours(K))
  # Bytes of A are widened, and added up where B has a zero point.
  rows: BATCH * BLOCKS * M * (words(K) + K * (B_ZERO := (b_zero_point != 128 * (1 - B_signed)) * 1))
  packed: BATCH * N * (words(K) + K * (unless(one(B_sK)) + some(a_zero_point * a_zero_point)))
  columns: BATCH * N
  results: BATCH * M * N * (some(K) + B_ZERO)
  behind: BATCH * M * N * FUSED
--- */
#include "tilewright_smlad.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

/* What is subtracted from B so that it is signed: unsigned values lie around 128. */
#define MIDDLE ((U)(-1) > 0 ? 128 : 0)

/* Up to 16 columns of B as pairs of filters, and where they are wanted, their sums. */
static void matmul_s8_panel(const U *B, ptrdiff_t b_k, ptrdiff_t b_n, int K, int count, int8_t *panel, int32_t *sums) {
    const int quads = (K + 3) / 4, whole = b_k == 1 ? K / 4 : 0;
    const uint32_t turn = MIDDLE ? 0x80808080u : 0u;
    for (int j = 0; j < (count + 1) / 2 * 2; j++) {
        int8_t *to = panel + (ptrdiff_t)(j / 2) * quads * 8 + j % 2 * 4;
        const U *from = B + tw_min(j, count - 1) * b_n; /* where one is missing, the last one is done twice */
        int32_t sum = 0;
        for (int quad = 0; quad < whole; quad++, from += 4, to += 8)
            tw_store_word(to, tw_load_word(from) ^ turn);
        for (int k = whole * 4; k < quads * 4; k += 4, to += 8) {
            for (int i = 0; i < 4; i++, from += b_k)
                to[i] = k + i < K ? (int8_t)(*from - MIDDLE) : (int8_t)0;
        }
        if (sums) {
            to -= (ptrdiff_t)quads * 8;
            for (int k = 0; k < K; k++)
                sum += to[k / 4 * 8 + k % 4];
            sums[j] = sum;
        }
    }
}

/* Zero points: (a - za) . (b - zb) = a . b - za * sum(b) - zb * sum(a) + K * za * zb. */
static void matmul_s8(const T *A, const U *B, void *Y, int BATCH, int M, int K, int N, ptrdiff_t A_sBATCH,
                      ptrdiff_t A_sM, ptrdiff_t B_sBATCH, ptrdiff_t B_sK, ptrdiff_t B_sN, int a_zero_point,
                      int b_zero_point, void *scratch, const struct Epilogue *epilogue) {
    const int quads = (K + 3) / 4, b_zero = b_zero_point - MIDDLE;
    T *const rest = scratch;
    uint32_t *const wide = (uint32_t *)scratch + 3;
    int8_t *const panel = (int8_t *)(wide + quads * 6);
    int32_t bias[16], out[3 * 16];
    for (int j = 0; j < 16; j++)
        bias[j] = 0;
    for (int batch = 0; batch < BATCH; batch++) {
        for (int n = 0; n < N; n += 16) {
            const int count = tw_min(16, N - n);
            matmul_s8_panel(B + batch * B_sBATCH + n * B_sN, B_sK, B_sN, K, count, panel, a_zero_point ? bias : NULL);
            for (int j = 0; j < count && a_zero_point; j++)
                bias[j] = a_zero_point * (K * b_zero - bias[j]);
            for (int m = 0, rows; m < M; m += rows) {
                rows = tw_min(3, M - m);
                const T *a = A + batch * A_sBATCH + m * A_sM;
                const int many = tw_widen_rows(wide, a, A_sM, rows, K, rest);
                tw_smlad_block(many, wide, panel, quads, count, bias, out);
                for (int i = 0; i < rows && b_zero; i++) {
                    int32_t sum = 0;
                    for (int k = 0; k < K; k++)
                        sum += a[i * A_sM + k];
                    for (int j = 0; j < count; j++)
                        out[i * 16 + j] -= b_zero * sum;
                }
                STORE(epilogue, Y, out, ((ptrdiff_t)batch * M + m) * N + n, N, n, rows, count);
            }
        }
    }
}
#undef MIDDLE
