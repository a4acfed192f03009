/* ---
op: RequantShift
types: {x: int32, mul: int32, add: int32, y: U}
U: [int8, int16]
when: {column_shift: ">= 1", mul_sROWS: "== 0", add_sROWS: "== 0", mul_sCOLUMNS: "== 1", add_sCOLUMNS: "== 1", x_sCOLUMNS: "x_sCOLUMNS == 1 or COLUMNS == 1", x_sROWS: ">= 0", y_sROWS: ">= 0"}
epilogue: row
strided: [x, y]
# Four columns at a time: their factors, then all their rows; then columns that are left.
cycles:
  fours: ROWS * whole_fours(COLUMNS)
  columns: whole_fours(COLUMNS)
  single: ROWS * left_of_fours(COLUMNS)
  single_columns: left_of_fours(COLUMNS)
  behind: ROWS * COLUMNS * FUSED
  call: some(ROWS)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t U;
#endif

TW_INLINE U requant_columns_value(int32_t x, int32_t factor, int32_t added, int shift) {
    const int32_t rounded = tw_sum_rounded(x * factor, added, 1 << shift >> 1, shift);
    return (U)(sizeof(U) == 1 ? tw_clamp(rounded, -128, 127) : tw_clamp(rounded, -32768, 32767));
}

/* Factors of a column stay in registers while its rows are done. */
static void requant_columns(const int32_t *x, const int32_t *mul, const int32_t *add, void *y, int ROWS, int COLUMNS,
                            int x_sROWS, int y_sROWS, int column_shift, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const int shift = column_shift;
    int column = 0;
    for (; column + 4 <= COLUMNS; column += 4) {
        const int32_t *a = x + column, *const m = mul + column, *const b = add + column;
        const int32_t m0 = m[0], m1 = m[1], m2 = m[2], m3 = m[3], b0 = b[0], b1 = b[1], b2 = b[2], b3 = b[3];
        for (int row = 0, at = column; row < ROWS; row++, a += x_sROWS, at += y_sROWS)
            STORE_4(&e, y, requant_columns_value(a[0], m0, b0, shift), requant_columns_value(a[1], m1, b1, shift),
                    requant_columns_value(a[2], m2, b2, shift), requant_columns_value(a[3], m3, b3, shift), at, column);
    }
    for (; column < COLUMNS; column++) {
        const int32_t factor = mul[column], added = add[column];
        for (int row = 0; row < ROWS; row++)
            STORE_1(&e, y, requant_columns_value(x[row * x_sROWS + column], factor, added, shift),
                    row * y_sROWS + column, column);
    }
}
