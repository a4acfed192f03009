/* ---
op: MatMul
types: {A: float16, B: float16, Y: float16}
when: {A_sROWS: "A_sROWS == K or ROWS == 1", A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0"}
pack: {B: "K,N -> N/8,K/4,N%8,K%4"}
epilogue: row
scratch: "2*K+8"
# Eight columns of a row at a time, four lanes along K, added up as float32. Rows that begin with four are one stream, where
# results go to Y as they are; others are copied.
cycles:
  quads: (BLOCKS := ROWS * eights(N)) * fours(K)
  blocks: BLOCKS
  rows: ROWS * some((KEPT := STEPS + left_of_eights(N)) + left_of_fours(K))
  copied: ragged_fours(K) * ROWS * K
  results: ROWS * N * some(KEPT)
  behind: ROWS * N * FUSED
  call: 1
--- */
#include "tilewright_streams.h"

/* Columns whose results are there before they are stored. */
#define COLUMNS 64
/* Four numbers as float16: vfcpka.h.s, vfcpkb.h.s. */
#define PACKED(d, a, b, c, e) ".insn r 0x33, 2, 0x58, " d ", " a ", " b "\n.insn r 0x33, 6, 0x58, " d ", " c ", " e "\n"

/* Columns of a row, eight after the other. */
#define DOTS(STORES, bytes)                                                                                            \
    __asm__ volatile("fcvt.d.w ft11, zero\nfmv.w.x fs0, zero\n" TW_STREAMS_ON "1:\n" TW_EIGHT(TW_ZERO_D)               \
                         TW_FREP_8("%[more]") TW_EIGHT(TW_VFDOTPEX_S_H) TW_NO_RESULTS TW_ADD_LANES STORES              \
                     "addi %[out], %[out], " bytes                                                                     \
                     "\naddi %[blocks], %[blocks], -1\nbnez %[blocks], 1b\n" TW_STREAMS_OFF                            \
                     : [blocks] "+&r"(blocks), [out] "+&r"(out)                                                        \
                     : [more] "r"(quads - 1)                                                                           \
                     : TW_EIGHT_SUMS, TW_EIGHT_RESULTS, TW_STREAM_REGISTERS, "ft11", "fs0", "memory")

TW_APART void matmul_packed_f16_dots(int blocks, int quads, float *out) {
    DOTS(TW_RESULTS_AT("fsw", "4", "%[out]"), "32");
}
TW_APART void matmul_packed_f16_halves(int blocks, int quads, uint16_t *out) {
    DOTS(PACKED("ft3", "fa3", "fa4", "fa5", "fa6")
             PACKED("ft4", "fa7", "ft8", "ft9", "ft10") "fsd ft3, 0(%[out])\nfsd ft4, 8(%[out])\n",
         "16");
}

static void matmul_packed_f16(const uint16_t *A, const uint16_t *B, uint16_t *Y, int ROWS, int K, int N, void *scratch,
                              const struct Epilogue *epilogue) {
    const int quads = (K + 3) / 4, copied = ((uintptr_t)A | (uintptr_t)K * 2) % 8 != 0;
    const int plain = TW_PLAIN(Y, uint16_t) && (uintptr_t)Y % 8 == 0 && N % 8 == 0, most = plain ? N : COLUMNS;
    const int rows = plain && !copied ? ROWS : 1;
    float out[COLUMNS];
    TW_STREAM_TIMES(0, 8);
    TW_STREAM_TIMES(1, 1);
    TW_STREAM_LOOP(0, 0, quads, 8);
    TW_STREAM_LOOP(0, 2, rows, 8);
    for (int m = 0; m < ROWS; m += rows) {
        const uint16_t *a = A + m * K;
        if (copied) {
            uint16_t *const row = scratch;
            for (int k = 0; k < quads * 4; k++)
                row[k] = k < K ? a[k] : 0;
            tw_stream_fence();
            a = row;
        }
        for (int n = 0; n < N; n += most) {
            const int count = tw_min(most, N - n), blocks = (count + 7) / 8, at = m * N + n, words = blocks * quads * 8;
            TW_STREAM_LOOP(0, 1, blocks, (1 - quads) * 8);
            TW_STREAM_LOOP(1, 0, words, 8);
            TW_STREAM_LOOP(1, 1, rows, (1 - words) * 8);
            TW_STREAM_READ(0, 3, a);
            TW_STREAM_READ(1, 2, B + n * quads * 4);
            if (plain) {
                matmul_packed_f16_halves(rows * blocks, quads, (uint16_t *)(void *)Y + at);
            } else {
                matmul_packed_f16_dots(blocks, quads, out);
                TW_STORE_ROW(epilogue, Y, out, at, n, count);
            }
        }
    }
}
#undef DOTS
#undef PACKED
#undef COLUMNS
