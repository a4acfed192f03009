/* ---
op: MatMul
types: {A: float64, B: float64, Y: float64}
when: {A_sBATCH: ">= 0", B_sBATCH: ">= 0", N: ">= 8"}
epilogue: row
accumulate: [K]
# Eight columns at a time, the last ones together with some of those before.
cycles:
  products: (BLOCKS := BATCH * M * eights(N)) * K
  blocks: BLOCKS
  rows: BATCH * M
  results: BATCH * M * N * some(STEPS + SUMS)
  behind: BATCH * M * N * FUSED
  call: 1
--- */
#include "tilewright_streams.h"

/* Columns whose results are there before they are stored. */
#define COLUMNS 32

/* Columns of a row, eight after the other: stream 0 gives each element of A eight times, stream 1 a row of eight columns of B
 * after the other. */
TW_APART void matmul_f64_dots(int blocks, int K, double *out) {
    __asm__ volatile(
        TW_STREAMS_ON "1:\n" TW_SUMS(TW_FMUL_D, TW_FMADD_D) TW_SUMS_AT(
            "fsd", "8",
            "%[out]") "addi %[out], %[out], 64\naddi %[blocks], %[blocks], -1\nbnez %[blocks], 1b\n" TW_STREAMS_OFF
        : [blocks] "+&r"(blocks), [out] "+&r"(out)
        : [more] "r"(K - 2)
        : TW_EIGHT_SUMS, TW_STREAM_REGISTERS, "memory");
}

static void matmul_f64(const double *A, const double *B, double *Y, int BATCH, int M, int K, int N, int A_sBATCH,
                       int A_sM, int A_sK, int B_sBATCH, int B_sK, int B_sN, const struct Epilogue *epilogue) {
    const int plain = TW_PLAIN(Y, double), most = plain ? N : COLUMNS;
    const struct tw_columns columns = tw_columns(N, 8);
    double out[COLUMNS];
    TW_STREAM_TIMES(0, 8);
    TW_STREAM_LOOP(0, 0, K, A_sK * 8);
    TW_STREAM_TIMES(1, 1);
    TW_STREAM_LOOP(1, 0, 8, B_sN * 8);
    TW_STREAM_LOOP(1, 1, K, (B_sK - 7 * B_sN) * 8);
    for (int row = 0, batch = 0, m = 0; row < BATCH * M; row++) {
        for (int part = 0; part < 3; part++)
            for (int n = columns.begin[part], count; n < columns.end[part]; n += count) {
                const int done = tw_max(0, columns.done[part] - n), at = row * N + n;
                count = tw_min(columns.end[part] - n, most);
                TW_STREAM_LOOP(0, 1, count / 8, (1 - K) * A_sK * 8);
                TW_STREAM_LOOP(1, 2, count / 8, (B_sN - (K - 1) * B_sK) * 8);
                TW_STREAM_READ(0, 2, A + batch * A_sBATCH + m * A_sM);
                TW_STREAM_READ(1, 3, B + batch * B_sBATCH + n * B_sN);
                matmul_f64_dots(count / 8, K, plain ? (double *)(void *)Y + at : out);
                if (!plain)
                    TW_STORE_ROW(epilogue, Y, out + done, at + done, n + done, count - done);
            }
        if (++m == M) {
            m = 0;
            batch++;
        }
    }
}
#undef COLUMNS
