/* ---
op: Add
types: {A: int32, B: int32, Y: int32}
when: {B_sROWS: "== 0", B_sCOLUMNS: "B_sCOLUMNS == 1 or COLUMNS == 1", A_sCOLUMNS: "A_sCOLUMNS == 1 or COLUMNS == 1", A_sROWS: ">= 0", Y_sROWS: ">= 0"}
epilogue: row
strided: [A, Y]
# 24.6, 27.6 and 25: fitted to 10 layers that become bytes, one step fused, and to 20 chains of several steps; for a single
# row less is prepared. Each step behind the third takes 3 more for four columns: 8 layers of 2 to 7 steps with one row a
# core. OTHERS: what steps read begins in the same bank for all cores.
# 35: one step behind 10 to 120 rows of 4 or 8 columns, 20 kinds of tiles, most of them 25 to 75.
# 17 columns take 68 more than 16, and code for the last ones is cold even where other layers of whole fours ran.
cycles: "(COLUMNS//4)*(ROWS*(27.6 - SCALES*(STEPS < 2)*3 + OTHERS*(STEPS > 1)*0.35) + 4 + max(STEPS - 3, 0)*3
  + 21*(ROWS > 1 or STEPS*(SCALES + SHIFTS) == 1))
  + (ROWS > 1)*(STEPS == 1)*35 + min(COLUMNS%4, 1)*(ROWS*(40 + COLUMNS%4*28) + 50 + FIRST*150)"
--- */
#include "tilewright_kernel.h"

/* What is added to a column stays in registers while its rows are done. */
static void add_sums(const int32_t *A, const int32_t *B, void *Y, int ROWS, int COLUMNS, int A_sROWS, int Y_sROWS,
                     const struct Epilogue *epilogue) {
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
