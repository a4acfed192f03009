/* ---
op: Add
types: {A: int32, B: int32, Y: int32}
when: {B_sROWS: "== 0", B_sCOLUMNS: "B_sCOLUMNS == 1 or COLUMNS == 1", A_sCOLUMNS: "A_sCOLUMNS == 1 or COLUMNS == 1", A_sROWS: ">= 0", Y_sROWS: ">= 0"}
epilogue: row
strided: [A, Y]
# Four columns at a time: what is prepared for them, then all their rows, by code of its own where sums are scaled with a
# float; columns that are left are done row by row.
cycles:
  stores: unless(SCALES) * ROWS * whole_fours(COLUMNS)
  scaled: SCALES * ROWS * whole_fours(COLUMNS)
  columns: whole_fours(COLUMNS)
  single: ROWS * left_of_fours(COLUMNS)
  last_stores: ROWS * ragged_fours(COLUMNS)
  behind: unless(SCALES) * ROWS * COLUMNS * FUSED
  call: some(ROWS)
--- */
#include "tilewright_kernel.h"

/* What is added to a column stays in registers while its rows are done. */
static void add_sums(const int32_t *A, const int32_t *B, void *Y, int ROWS, int COLUMNS, int A_sROWS, int Y_sROWS,
                     const struct Epilogue *epilogue) {
#if STORE_POINTWISE && !STORE_SCALES
    /* Of a product of 64 bits with a number that it knows, the compiler makes up to 24 additions and shifts. */
    __asm__("" : "+r"(epilogue));
#endif
    const struct Epilogue e = *epilogue;
    int column = 0;
#if STORE_SCALES
    for (; ROWS && column + 4 <= COLUMNS; column += 4) {
        const int32_t *b = B + column;
        const struct tw_scale scale = TW_SCALE_OF(&e, column, b[0], b[1], b[2], b[3]);
        tw_scale_columns(STORE_SIGNED, A + column, A_sROWS, (char *)Y + column, Y_sROWS, ROWS, &scale);
    }
#endif
    for (; column + 4 <= COLUMNS; column += 4) {
        const int32_t b0 = B[column], b1 = B[column + 1], b2 = B[column + 2], b3 = B[column + 3];
        const int32_t *a = A + column;
        for (int row = 0, at = column; row < ROWS; row++, a += A_sROWS, at += Y_sROWS)
            STORE_4(&e, Y, a[0] + b0, a[1] + b1, a[2] + b2, a[3] + b3, at, column);
    }
    if (column == COLUMNS)
        return;
    for (int row = 0; row < ROWS; row++) {
        int32_t sums[4] = {0};
        for (int i = 0; i < (COLUMNS & 3); i++)
            sums[i] = A[row * A_sROWS + column + i] + B[column + i];
        STORE(epilogue, Y, sums, row * Y_sROWS + column, 0, column, 1, COLUMNS - column);
    }
}
