/* ---
op: MatMul
types: {A: T, B: int8, C: int32, Y: int32}
T: [int8, uint8]
when: {A_sROWS: "A_sROWS == K or ROWS == 1", A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0", a_zero_point: "== 0", b_zero_point: "== 0"}
pack: {B: "K,N -> N/4,K/16,N%4,K%16"}
epilogue: lanes
scratch: "16*((N+3)//4)*min(ROWS, 2)*2"
cycles:
  vectors_of_two_rows: fours(N) * whole_twos(ROWS) * sixteens(K)
  vectors_of_one_row: fours(N) * left_of_twos(ROWS) * sixteens(K)
  unsigned_sums: unless(A_signed) * (some(ROWS) + several(ROWS) * left_of_twos(ROWS)) * fours(N) * (sixteens(K) + some(K))
  pairs: twos(ROWS)
  single: ROWS * left_of_fours(N)
  lanes: ROWS * whole_fours(N)
  behind: ROWS * N * FUSED
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

TW_INLINE void finish(const struct Epilogue *epilogue, void *Y, const int32_t *sums, int at, int count) {
    const struct Epilogue e = *epilogue;
    int n = 0;
#if STORE_HAS_LANES
    for (; n + 4 <= count; n += 4, sums += 4)
        STORE_LANES(&e, Y, vldrwq_s32(sums), at + n, n);
#endif
    for (; n < count; n += 4, sums += 4) {
        if (n + 4 <= count)
            STORE_4(&e, Y, sums[0], sums[1], sums[2], sums[3], at + n, n);
        else
            for (int i = 0; n + i < count; i++)
                STORE_1(&e, Y, sums[i], at + n + i, n + i);
    }
}

/* Two rows by four columns; of an odd number of rows the last one is alone. */
static void matmul_packed_s8(const T *A, const int8_t *B, const int32_t *C, void *Y, int ROWS, int K, int N,
                             void *scratch, const struct Epilogue *epilogue) {
    const int fours = (N + 3) / 4, flip = (T)-1 > 0;
    int32_t *const first = scratch;
    for (int m = 0, rows; m < ROWS; m += rows) {
        rows = tw_min(2, ROWS - m);
        if (m == 0 || rows == 1)
            tw_dots_first(first, rows, flip, C, B, K, N);
        struct tw_dots dots = tw_dots_of(rows, flip, K, N, B, first);
        dots.a0 = A + m * K;
        dots.a1 = A + (m + 1) * K;
        dots.sums = first + fours * 4 * rows;
        dots.pairs = 1;
        if (rows == 2)
            TW_FOR_BYTES(A, tw_dot_pairs)(&dots);
        else
            TW_FOR_BYTES(A, tw_dot_singles)(&dots);
        for (int row = 0; row < rows; row++)
            finish(epilogue, Y, dots.sums + row * fours * 4, (m + row) * N, N);
    }
}
