/* ---
op: MatMul
types: {A: float32, B: float32, Y: float32}
when: {A_sBATCH: "A_sBATCH >= 0 and A_sBATCH % 2 == 0", B_sBATCH: "B_sBATCH >= 0 and B_sBATCH % 2 == 0", N: ">= 8", K: "% 2 == 0", A_sK: "== 1", A_sM: "A_sM % 2 == 0 or M == 1", B_sK: "== 1", B_sN: "% 2 == 0"}
epilogue: row
# Eight columns of a row at a time, in pairs along K, the last ones together with some of those before.
cycles:
  pairs: (BLOCKS := BATCH * M * eights(N)) * twos(K)
  blocks: BLOCKS
  rows: BATCH * M
  results: BATCH * M * N * some(STEPS)
  behind: BATCH * M * N * FUSED
  call: 1
--- */
#include "tilewright_floats.h"

/* Stream 0 gives each pair of a row eight times, stream 1 pairs of eight columns of B, which lie one behind the other. */
static void matmul_turned_f32(const float *A, const float *B, float *Y, int BATCH, int M, int K, int N, int A_sBATCH,
                              int A_sM, int B_sBATCH, int B_sN, const struct Epilogue *epilogue) {
    const int plain = TW_PLAIN(Y, float), most = plain ? N : TW_FLOAT_COLUMNS, pairs = K / 2;
    const struct tw_columns columns = tw_columns(N, 8);
    const float zeros[8] = {0};
    float out[TW_FLOAT_COLUMNS];
    TW_STREAM_TIMES(0, 8);
    TW_STREAM_TIMES(1, 1);
    TW_STREAM_LOOP(0, 0, pairs, 8);
    TW_STREAM_LOOP(1, 0, 8, B_sN * 4);
    TW_STREAM_LOOP(1, 1, pairs, 8 - B_sN * 28);
    for (int row = 0, batch = 0, m = 0; row < BATCH * M; row++) {
        for (int part = 0; part < 3; part++)
            for (int n = columns.begin[part], count; n < columns.end[part]; n += count) {
                const int done = tw_max(0, columns.done[part] - n), at = row * N + n;
                count = tw_min(columns.end[part] - n, most);
                TW_STREAM_LOOP(0, 1, count / 8, (1 - pairs) * 8);
                TW_STREAM_LOOP(1, 2, count / 8, B_sN * 4 + (1 - pairs) * 8);
                TW_STREAM_READ(0, 2, A + batch * A_sBATCH + m * A_sM);
                TW_STREAM_READ(1, 3, B + batch * B_sBATCH + n * B_sN);
                tw_float_dots(1, count / 8, pairs, zeros, 0, plain ? (float *)(void *)Y + at : out);
                if (!plain)
                    TW_STORE_ROW(epilogue, Y, out + done, at + done, n + done, count - done);
            }
        if (++m == M) {
            m = 0;
            batch++;
        }
    }
}
