/* ---
op: RequantShift
types: {x: T, mul: V, add: W, y: U}
T: [int8, uint8, int32]
U: [int8, uint8]
V: [int8, uint8, int16, int32, int64]
W: [int8, uint8, int16, int32, int64]
when: {shift: ">= 1", x_sCOLUMNS: "x_sCOLUMNS == 1 or COLUMNS == 1", x_sROWS: ">= 0", y_sROWS: ">= 0"}
epilogue: row
strided: [x, y]
# Four neighbours at a time, then one. Rows of which nothing is left out are one, unless what is behind reads by place.
cycles:
  rows: (LINES := ROWS - (ROWS - 1) * none(LOADS) * (x_sROWS == COLUMNS) * (y_sROWS == COLUMNS))
  fours: LINES * whole_fours(LENGTH := ROWS * COLUMNS // max(LINES, 1))
  single: LINES * left_of_fours(LENGTH)
  shifted: SHIFTS * some(STEPS) * ROWS * COLUMNS
  loaded: LOADS * ROWS * COLUMNS
  behind: unless(SHIFTS * STEPS) * ROWS * COLUMNS * FUSED
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

TW_INLINE U scaled(int32_t x, int32_t factor, int32_t added, int shift) {
    const int32_t rounded = tw_sum_rounded(x * factor, added, 1 << shift >> 1, shift);
    return (U)((U)(-1) < 0 ? tw_clamp(rounded, -128, 127) : tw_clamp(rounded, 0, 255));
}

/* Four neighbours at a time. Rows of which nothing is left out are one. */
static void requant_bytes(const T *x, void *y, int ROWS, int COLUMNS, int x_sROWS, int y_sROWS, int32_t factor,
                          int32_t added, int shift, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const int joined = STORE_POINTWISE && x_sROWS == COLUMNS && y_sROWS == COLUMNS;
    const int rows = joined ? 1 : ROWS, columns = joined ? ROWS * COLUMNS : COLUMNS;
    for (int row = 0; row < rows; row++, x += x_sROWS) {
        const T *a = x;
        int column = 0, at = row * y_sROWS;
        for (; column + 4 <= columns; column += 4, at += 4, a += 4)
            STORE_4(&e, y, scaled(a[0], factor, added, shift), scaled(a[1], factor, added, shift),
                    scaled(a[2], factor, added, shift), scaled(a[3], factor, added, shift), at, column);
        for (; column < columns; column++)
            STORE_1(&e, y, scaled(*a++, factor, added, shift), at++, column);
    }
}
