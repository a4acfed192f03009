/* ---
op: {Add: "+", Mul: "*"}
types: {A: T, B: U, Y: int32}
T: [int8, uint8]
U: [int8, uint8]
when: {A_sCOLUMNS: "A_sCOLUMNS == 1 or COLUMNS == 1", B_sCOLUMNS: "B_sCOLUMNS == 1 or COLUMNS == 1", A_sROWS: ">= 0", B_sROWS: ">= 0", Y_sROWS: ">= 0"}
epilogue: lanes
strided: [A, B, Y]
cycles:
  # Rows of which nothing is left out are one.
  rows: (LINES := ROWS - (ROWS - 1) * (A_sROWS == COLUMNS) * (B_sROWS == COLUMNS) * (Y_sROWS == COLUMNS))
  lanes: LINES * whole_fours(LENGTH := ROWS * COLUMNS // max(LINES, 1))
  single: LINES * left_of_fours(LENGTH)
  scaled: SHIFTS * some(STEPS) * ROWS * COLUMNS
  behind: unless(SHIFTS * STEPS) * ROWS * COLUMNS * FUSED
  call: some(ROWS)
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#define OP +
#endif

/* Four neighbours at a time. Rows of which nothing is left out are one. */
static void add_mul_bytes(const T *A, const U *B, void *Y, int ROWS, int COLUMNS, int A_sROWS, int B_sROWS, int Y_sROWS,
                          const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const int joined = !STORE_BY_CHANNEL && A_sROWS == COLUMNS && B_sROWS == COLUMNS && Y_sROWS == COLUMNS;
    const int rows = joined ? 1 : ROWS, columns = joined ? ROWS * COLUMNS : COLUMNS;
    for (int row = 0; row < rows; row++) {
        const T *a = A + row * A_sROWS;
        const U *b = B + row * B_sROWS;
        const int at = row * Y_sROWS;
        int column = 0;
#if STORE_HAS_LANES
        for (; column + 4 <= columns; column += 4)
            STORE_LANES(&e, Y, tw_lanes_at(a + column) OP tw_lanes_at(b + column), at + column, column);
#endif
        for (int left = TW_LANES_REST(column, columns); left > 0; left--, column++)
            STORE_1(&e, Y, a[column] OP b[column], at + column, column);
    }
}
