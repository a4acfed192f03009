/* ---
op: RequantShift
types: {x: T, mul: V, add: W, y: U}
T: [int8, uint8, int32]
U: [int8, uint8]
V: [int8, uint8, int16, int32, int64]
W: [int8, uint8, int16, int32, int64]
when: {shift: ">= 1", x_sCOLUMNS: "x_sCOLUMNS == 1 or COLUMNS == 1", x_sROWS: ">= 0", y_sROWS: ">= 0"}
epilogue: lanes
strided: [x, y]
cycles:
  # Rows of which nothing is left out are one.
  lanes: (APART := max(x_sROWS != COLUMNS, y_sROWS != COLUMNS) * 1) * ROWS * whole_fours(COLUMNS) + unless(APART) * fours(ROWS*COLUMNS)
  rows: APART * ROWS * (some(COLUMNS) + left_of_fours(COLUMNS))
  call: some(ROWS)
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

/* Four neighbours at a time. Rows of which nothing is left out are one. */
static void requant_bytes(const T *x, void *y, int ROWS, int COLUMNS, int x_sROWS, int y_sROWS, int32_t factor,
                          int32_t added, int shift, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const int joined = !STORE_BY_CHANNEL && x_sROWS == COLUMNS && y_sROWS == COLUMNS;
    const int rows = joined ? 1 : ROWS, columns = joined ? ROWS * COLUMNS : COLUMNS, lo = (U)-1 < 0 ? -128 : 0;
    for (int row = 0; row < rows; row++, x += x_sROWS) {
        const int at = row * y_sROWS;
        int column = 0;
#if STORE_HAS_LANES
        for (; column + 4 <= columns; column += 4) {
            const tw_lanes product = vmulq_n_s32(tw_lanes_at(x + column), factor);
            const tw_lanes scaled = tw_lanes_clamp(tw_lanes_sum_rounded(product, added, shift), lo, lo + 255);
            STORE_LANES(&e, y, scaled, at + column, column);
        }
#endif
        for (int left = TW_LANES_REST(column, columns); left > 0; left--, column++) {
            const int32_t scaled = tw_sum_rounded(x[column] * factor, added, 1 << shift >> 1, shift);
            STORE_1(&e, y, (U)tw_clamp(scaled, lo, lo + 255), at + column, column);
        }
    }
}
