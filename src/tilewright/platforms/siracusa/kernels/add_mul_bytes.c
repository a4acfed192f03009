/* ---
op: {Add: "+", Mul: "*"}
types: {A: T, B: U, Y: int32}
T: [int8, uint8]
U: [int8, uint8]
when: {A_sCOLUMNS: "A_sCOLUMNS == 1 or COLUMNS == 1", B_sCOLUMNS: "B_sCOLUMNS == 1 or COLUMNS == 1", A_sROWS: ">= 0", B_sROWS: ">= 0", Y_sROWS: ">= 0"}
epilogue: row
strided: [A, B, Y]
# Four neighbours at a time, then one. Rows of which nothing is left out are one, unless what is behind them reads by place.
cycles:
  rows: (LINES := ROWS - (ROWS - 1) * none(LOADS) * (A_sROWS == COLUMNS) * (B_sROWS == COLUMNS) * (Y_sROWS == COLUMNS))
  fours: LINES * whole_fours(LENGTH := ROWS * COLUMNS // max(LINES, 1))
  single: LINES * left_of_fours(LENGTH)
  shifted: SHIFTS * some(STEPS) * ROWS * COLUMNS
  loaded: LOADS * ROWS * COLUMNS
  behind: unless(SHIFTS * STEPS) * ROWS * COLUMNS * FUSED
  call: some(ROWS)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#define OP +
#endif

/* Four neighbours at a time. Rows of which nothing is left out are one. */
static void add_mul_bytes(const T *A, const U *B, void *Y, int ROWS, int COLUMNS, int A_sROWS, int B_sROWS, int Y_sROWS,
                          const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const int joined = STORE_POINTWISE && A_sROWS == COLUMNS && B_sROWS == COLUMNS && Y_sROWS == COLUMNS;
    const int rows = joined ? 1 : ROWS, columns = joined ? ROWS * COLUMNS : COLUMNS;
    for (int row = 0; row < rows; row++, A += A_sROWS, B += B_sROWS) {
        const T *a = A;
        const U *b = B;
        int column = 0, at = row * Y_sROWS;
        for (; column + 4 <= columns; column += 4, at += 4, a += 4, b += 4)
            STORE_4(&e, Y, a[0] OP b[0], a[1] OP b[1], a[2] OP b[2], a[3] OP b[3], at, column);
        for (; column < columns; column++)
            STORE_1(&e, Y, *a++ OP * b++, at++, column);
    }
}
