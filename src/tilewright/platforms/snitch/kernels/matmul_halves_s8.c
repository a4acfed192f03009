/* ---
op: MatMul
types: {A: T, B: int8, C: int32, Y: int32}
T: [int8, uint8]
when: {A_sROWS: "A_sROWS == K or ROWS == 1", A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0", a_zero_point: "== 0", b_zero_point: "== 0"}
pack: {B: "K,N -> N/8,K/4,N%8,K%4"}
epilogue: row
accumulate: [K]
scratch: "(ROWS*2+20)*((K+3)//4)*4"
# Bytes become numbers of 16 bits: rows once, eight columns before they are multiplied.
cycles:
  quads: ROWS * eights(N) * fours(K)
  weights: eights(N) * fours(K)
  inputs: ROWS * fours(K)
  copied: ragged_fours(K) * ROWS * K
  rows: ragged_fours(K) * ROWS
  blocks: ROWS * eights(N)
  behind: ROWS * N * FUSED
  call: 1
--- */
#include "tilewright_halves.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void matmul_halves_s8(const T *A, const int8_t *B, const int32_t *C, void *Y, int ROWS, int K, int N,
                             void *scratch, const struct Epilogue *epilogue) {
    const int quads = (K + 3) / 4, is_signed = (T)-1 < 0;
    const int most = is_signed ? TW_QUADS_OF_SIGNED : TW_QUADS_OF_UNSIGNED;
    uint64_t *const rows = scratch, *const columns = rows + ROWS * quads;
    if (((uintptr_t)A | (uintptr_t)K) % 4 == 0) {
        tw_halves((const uint32_t *)(const void *)A, ROWS * quads, is_signed, rows);
    } else {
        uint32_t *const row = (uint32_t *)(void *)(columns + 8 * quads);
        for (int m = 0; m < ROWS; m++) {
            row[quads - 1] = 0;
            memcpy(row, A + m * K, (size_t)K);
            tw_halves(row, quads, is_signed, rows + m * quads);
        }
    }
    for (int n = 0; n < N; n += 8) {
        const int count = tw_min(8, N - n);
        tw_halves((const uint32_t *)(const void *)(B + n * quads * 4), quads * 8, 1, columns);
        TW_STREAM_TIMES(0, 8);
        TW_STREAM_TIMES(1, 1);
        for (int m = 0; m < ROWS; m++) {
            int32_t out[16];
            tw_halves_begin(C, n, count, out);
            for (int first = 0; first < quads; first += most) {
                const int part = tw_min(most, quads - first);
                TW_STREAM_LOOP(0, 0, part, 8);
                TW_STREAM_LOOP(1, 0, part * 8, 8);
                TW_STREAM_READ(0, 1, rows + m * quads + first);
                TW_STREAM_READ(1, 1, columns + first * 8);
                tw_halves_dots(part, out);
            }
            STORE(epilogue, Y, out, m * N + n, 0, n, 1, count);
        }
    }
}
