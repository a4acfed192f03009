/* ---
op: MatMul
types: {A: float32, B: float32, C: float32, Y: float32}
when: {A_sROWS: "A_sROWS == K or ROWS == 1", A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0"}
pack: {B: "K,N -> N/8,K/2,N%8,K%2"}
epilogue: row
accumulate: [K]
scratch: "4*K+8"
# Eight columns of a row at a time, in pairs along K. Rows that begin with a pair are one stream, where results go to Y as they
# are; others are copied.
cycles:
  pairs: (BLOCKS := ROWS * eights(N)) * twos(K)
  blocks: BLOCKS
  rows: ROWS * some((KEPT := STEPS + SUMS + left_of_eights(N)) + left_of_twos(K))
  copied: left_of_twos(K) * ROWS * K
  results: ROWS * N * some(KEPT)
  behind: ROWS * N * FUSED
  call: 1
--- */
#include "tilewright_floats.h"

static void matmul_packed_f32(const float *A, const float *B, const float *C, float *Y, int ROWS, int K, int N,
                              void *scratch, const struct Epilogue *epilogue) {
    const int pairs = (K + 1) / 2, copied = ((uintptr_t)A | (uintptr_t)K * 4) % 8 != 0;
    const int plain = TW_PLAIN(Y, float) && N % 8 == 0, most = plain ? N : TW_FLOAT_COLUMNS;
    const int rows = plain && !copied ? ROWS : 1;
    float out[TW_FLOAT_COLUMNS], panel[TW_FLOAT_COLUMNS];
    TW_STREAM_TIMES(0, 8);
    TW_STREAM_TIMES(1, 1);
    TW_STREAM_LOOP(0, 0, pairs, 8);
    TW_STREAM_LOOP(0, 2, rows, 8);
    for (int m = 0; m < ROWS; m += rows) {
        const float *a = A + m * K;
        if (copied)
            a = tw_float_row(a, K, scratch);
        for (int n = 0; n < N; n += most) {
            const int count = tw_min(most, N - n), blocks = (count + 7) / 8, at = m * N + n, words = blocks * pairs * 8;
            const float *const bias = tw_float_biases(C, n, count, panel);
            TW_STREAM_LOOP(0, 1, blocks, (1 - pairs) * 8);
            TW_STREAM_LOOP(1, 0, words, 8);
            TW_STREAM_LOOP(1, 1, rows, (1 - words) * 8);
            TW_STREAM_READ(0, 3, a);
            TW_STREAM_READ(1, 2, B + n * pairs * 2);
            tw_float_dots(rows, blocks, pairs, bias, C ? 32 : 0, plain ? (float *)(void *)Y + at : out);
            if (!plain)
                TW_STORE_ROW(epilogue, Y, out, at, n, count);
        }
    }
}
