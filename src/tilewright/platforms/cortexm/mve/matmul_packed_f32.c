/* ---
op: MatMul
types: {A: float32, B: float32, C: float32, Y: float32}
when: {A_sROWS: "A_sROWS == K or ROWS == 1", A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0"}
pack: {B: "K,N -> N/8,K,N%8"}
epilogue: lanes
scratch: "32*((N+7)//8)*(1 + min(2, ROWS))"
cycles:
  products_of_two_rows: eights(N) * whole_twos(ROWS) * K
  products_of_one_row: eights(N) * left_of_twos(ROWS) * K
  blocks: eights(N) * twos(ROWS)
  rows: ROWS
  lanes: ROWS * whole_fours(N)
  single: ROWS * left_of_fours(N)
  first_sums: N
  behind: ROWS * N * FUSED
--- */
#include "tilewright_mve.h"

TW_INLINE void finish(const struct Epilogue *epilogue, void *Y, const float *sums, int at, int count) {
    const struct Epilogue e = *epilogue;
    int n = 0;
#if STORE_HAS_LANES
    for (; n + 4 <= count; n += 4, sums += 4)
        STORE_LANES(&e, Y, vldrwq_f32(sums), at + n, n);
#endif
    for (; n < count; n += 4, sums += 4)
        STORE(&e, Y, sums, at + n, 0, n, 1, tw_min(4, count - n));
}

/* Two rows by eight columns; of an odd number of rows the last one is alone. */
static void matmul_packed_f32(const float *A, const float *B, const float *C, void *Y, int ROWS, int K, int N,
                              void *scratch, const struct Epilogue *epilogue) {
    const int columns = (N + 7) / 8 * 8;
    float *const first = scratch, *const sums = first + columns;
    struct tw_real_dots dots = tw_real_dots_of(K, N, B, first);
    tw_real_first(first, C, N);
    for (int m = 0; m < ROWS; m += 2) {
        dots.a0 = A + m * K;
        dots.a1 = A + (m + 1) * K;
        dots.sums = sums;
        dots.pairs = 1;
        if (m + 1 < ROWS)
            tw_real_pairs(&dots);
        else
            tw_real_singles(&dots);
        finish(epilogue, Y, sums, m * N, N);
        if (m + 1 < ROWS)
            finish(epilogue, Y, sums + columns, (m + 1) * N, N);
    }
}
