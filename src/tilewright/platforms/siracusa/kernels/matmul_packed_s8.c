/* ---
op: MatMul
types: {A: T, B: int8, C: int32, Y: int32}
T: [int8, uint8]
when: {A_sROWS: "A_sROWS == K or ROWS == 1", A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0", a_zero_point: "== 0", b_zero_point: "== 0"}
pack: {B: "K,N -> N/4,K/4,N%4,K%4"}
epilogue: row
accumulate: [K]
scratch: "min(K%4, 1)*min(ROWS, 4)*((K+3)//4)*4"
# Four rows and four columns at a time, word by word, then rows one by one; each four of a row are stored at once, others
# one by one. Where K is no words, rows are copied. Factors and shifts of sums take less than what else may be behind. Code
# for four rows, for one, and for last columns is cold by itself.
cycles:
  words_of_four_rows: fours(N) * whole_fours(ROWS) * words(K)
  words_of_one_row: fours(N) * left_of_fours(ROWS) * words(K)
  stores: (fours(N) + left_of_fours(N) + ragged_fours(N)) * ROWS
  calls: whole_fours(ROWS) + left_of_fours(ROWS) + some(ROWS)
  copied: ragged_fours(K) * ROWS * (words(K) + left_of_fours(K))
  shifted: SHIFTS * some(STEPS) * ROWS * N
  behind: unless(SHIFTS * STEPS) * ROWS * N * FUSED
  paths: FIRST * (some(whole_fours(ROWS)) + some(left_of_fours(ROWS)) + ragged_fours(N))
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Four rows, `pitch` apart in Y. */
TW_APART void four_rows(struct tw_runs *runs, const T *A, const int32_t *C, void *Y, int at, int pitch, int count,
                        const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    int32_t bias[4] = {0}, sum[16];
    for (int n = 0; n < count; n += 4) {
        runs->bias = C ? C + n : bias;
        if (n + 4 <= count) {
            TW_FOR_BYTES(A, tw_dot_runs)(runs, 1, sum);
            TW_UNROLL_BY(STORE_STEPS <= 1 ? 4 : 1) for (int i = 0; i < 4; i++) {
                const int32_t *row = sum + 4 * i;
                STORE_4(&e, Y, row[0], row[1], row[2], row[3], at + i * pitch + n, n);
            }
        } else {
            for (int i = 0; C && i < count - n; i++)
                bias[i] = C[n + i];
            runs->bias = bias;
            TW_FOR_BYTES(A, tw_dot_runs)(runs, 1, sum);
            for (int i = 0; i < 4; i++)
                STORE(epilogue, Y, sum + i * 4, at + i * pitch + n, 0, n, 1, count - n);
        }
    }
}

TW_APART void one_row(const T *A, const int8_t *B, int words, const int32_t *C, void *Y, int at, int count,
                      const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    for (int n = 0; n < count; n += 4) {
        const int whole = n + 4 <= count;
        int32_t sum[4];
        TW_UNROLL for (int i = 0; i < 4; i++) sum[i] = C && (whole || i < count - n) ? C[n + i] : 0;
        B = TW_FOR_BYTES(A, tw_dot_row)(A, B, words, sum);
        if (whole) {
            STORE_4(&e, Y, sum[0], sum[1], sum[2], sum[3], at + n, n);
        } else {
            const int32_t last[4] = {sum[0], sum[1], sum[2], sum[3]};
            STORE(epilogue, Y, last, at + n, 0, n, 1, count - n);
        }
    }
}

/* Rows are whole words; where those of A are not, they are copied. Words of four columns of B take turns. */
static void matmul_packed_s8(const T *A, const int8_t *B, const int32_t *C, void *Y, int ROWS, int K, int N,
                             void *scratch, const struct Epilogue *epilogue) {
    const int length = (K + 3) & ~3, padded = scratch && length != K;
    struct tw_runs runs = {.words = length >> 2, .rows = 1};
    for (int i = 0; i < 4 && i < ROWS && padded; i++)
        tw_fill_words((T *)scratch + (i + 1) * length - 4, 0, 1);
    for (int m = 0, rows; m < ROWS; m += rows) {
        rows = ROWS - m >= 4 ? 4 : 1;
        const T *a = A + m * K;
        for (int i = 0; i < rows && padded; i++)
            tw_copy_bytes((T *)scratch + i * length, a + i * K, K);
        if (padded)
            a = scratch;
        if (rows == 4) {
            for (int i = 0; i < 4; i++)
                runs.a[i] = a + i * length;
            runs.b = B;
            four_rows(&runs, A, C, Y, m * N, N, N, epilogue);
        } else {
            one_row(a, B, length >> 2, C, Y, m * N, N, epilogue);
        }
    }
}
