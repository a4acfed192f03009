/* ---
op: MatMul
types: {A: float32, B: float32, Y: float32}
when: {A_sBATCH: ">= 0", B_sBATCH: "B_sBATCH >= 0 and B_sBATCH % 2 == 0", N: "N >= 16 and N % 2 == 0", B_sN: "== 1", B_sK: "% 2 == 0"}
epilogue: row
accumulate: [K]
scratch: "8*K"
# Each number of a row is copied to both lanes; then sixteen columns at a time, in pairs, the last ones together with some of
# those before.
cycles:
  products: (BLOCKS := BATCH * M * sixteens(N)) * K
  blocks: BLOCKS
  copied: BATCH * M * K
  rows: BATCH * M
  results: BATCH * M * N * some(STEPS + SUMS)
  behind: BATCH * M * N * FUSED
  call: 1
--- */
#include "tilewright_floats.h"

/* row[k] = A[k] in both lanes: vfcpka.s.s. */
TW_INLINE void matmul_pairs_f32_row(const float *a, int step, int K, double *row) {
    for (int k = 0; k < K; k++, a += step)
        __asm__ volatile("flw ft3, 0(%0)\n.insn r 0x33, 0, 0x58, ft3, ft3, ft3\nfsd ft3, 0(%1)" ::"r"(a), "r"(row + k)
                         : "ft3", "memory");
    tw_stream_fence();
}

/* Columns of a row, sixteen after the other. */
TW_APART void matmul_pairs_f32_dots(int blocks, int K, float *out) {
    __asm__ volatile(
        TW_STREAMS_ON "1:\n" TW_SUMS(TW_VFMUL_S, TW_VFMAC_S) TW_SUMS_AT(
            "fsd", "8",
            "%[out]") "addi %[out], %[out], 64\naddi %[blocks], %[blocks], -1\nbnez %[blocks], 1b\n" TW_STREAMS_OFF
        : [blocks] "+&r"(blocks), [out] "+&r"(out)
        : [more] "r"(K - 2)
        : TW_EIGHT_SUMS, TW_STREAM_REGISTERS, "memory");
}

/* Stream 0 gives each pair of a row eight times, stream 1 eight pairs of columns of B, row by row. */
static void matmul_pairs_f32(const float *A, const float *B, float *Y, int BATCH, int M, int K, int N, int A_sBATCH,
                             int A_sM, int A_sK, int B_sBATCH, int B_sK, void *scratch,
                             const struct Epilogue *epilogue) {
    const int plain = TW_PLAIN(Y, float) && (uintptr_t)Y % 8 == 0, most = plain ? N : TW_FLOAT_COLUMNS;
    const struct tw_columns columns = tw_columns(N, 16);
    float out[TW_FLOAT_COLUMNS] __attribute__((aligned(8)));
    TW_STREAM_TIMES(0, 8);
    TW_STREAM_TIMES(1, 1);
    TW_STREAM_LOOP(0, 0, K, 8);
    TW_STREAM_LOOP(1, 0, 8, 8);
    TW_STREAM_LOOP(1, 1, K, B_sK * 4 - 56);
    for (int row = 0, batch = 0, m = 0; row < BATCH * M; row++) {
        matmul_pairs_f32_row(A + batch * A_sBATCH + m * A_sM, A_sK, K, scratch);
        for (int part = 0; part < 3; part++)
            for (int n = columns.begin[part], count; n < columns.end[part]; n += count) {
                const int done = tw_max(0, columns.done[part] - n), at = row * N + n;
                count = tw_min(columns.end[part] - n, most);
                TW_STREAM_LOOP(0, 1, count / 16, (1 - K) * 8);
                TW_STREAM_LOOP(1, 2, count / 16, 8 - (K - 1) * B_sK * 4);
                TW_STREAM_READ(0, 2, scratch);
                TW_STREAM_READ(1, 3, B + batch * B_sBATCH + n);
                matmul_pairs_f32_dots(count / 16, K, plain ? (float *)(void *)Y + at : out);
                if (!plain)
                    TW_STORE_ROW(epilogue, Y, out + done, at + done, n + done, count - done);
            }
        if (++m == M) {
            m = 0;
            batch++;
        }
    }
}
