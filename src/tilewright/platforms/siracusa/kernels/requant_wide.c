/* ---
op: RequantShift
types: {x: int32, mul: int32, add: int32, y: U}
U: [int8, uint8]
when: {wide_shift: ">= 1", mul_sROWS: "== 0", add_sROWS: "== 0", mul_sCOLUMNS: "== 1", add_sCOLUMNS: "== 1", x_sCOLUMNS: "x_sCOLUMNS == 1 or COLUMNS == 1", x_sROWS: ">= 0", y_sROWS: ">= 0"}
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

/* Products of 64 bits, whose quotients fit 32. */
TW_INLINE U requant_wide_value(int32_t x, int32_t factor, int64_t added, int shift) {
    const int32_t scaled = (int32_t)(((int64_t)x * factor + added) >> shift);
    return (U)((U)(-1) < 0 ? tw_clamp(scaled, -128, 127) : tw_clamp(scaled, 0, 255));
}

/* Factors of a column stay in registers while its rows are done. */
static void requant_wide(const int32_t *x, const int32_t *mul, const int32_t *add, void *y, int ROWS, int COLUMNS,
                         int x_sROWS, int y_sROWS, int wide_shift, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const int shift = wide_shift;
    const int64_t half = (int64_t)1 << shift >> 1;
    int column = 0;
    for (; column + 4 <= COLUMNS; column += 4) {
        const int32_t *a = x + column, *const m = mul + column, *const b = add + column;
        const int32_t m0 = m[0], m1 = m[1], m2 = m[2], m3 = m[3];
        const int64_t b0 = b[0] + half, b1 = b[1] + half, b2 = b[2] + half, b3 = b[3] + half;
        for (int row = 0, at = column; row < ROWS; row++, a += x_sROWS, at += y_sROWS)
            STORE_4(&e, y, requant_wide_value(a[0], m0, b0, shift), requant_wide_value(a[1], m1, b1, shift),
                    requant_wide_value(a[2], m2, b2, shift), requant_wide_value(a[3], m3, b3, shift), at, column);
    }
    for (; column < COLUMNS; column++) {
        const int32_t factor = mul[column];
        const int64_t added = add[column] + half;
        for (int row = 0; row < ROWS; row++)
            STORE_1(&e, y, requant_wide_value(x[row * x_sROWS + column], factor, added, shift), row * y_sROWS + column,
                    column);
    }
}
