/* ---
op: Transpose
types: {data: T, transposed: T}
T: [int8, uint8]
when: {D3: ">= 4", data_sD2: "== 1"}
strided: [data]
cycles:
  # Lines that follow each other are one.
  squares: (LINES := D0 * (D1 * (APART := unless(data_sD1 == D2)) + unless(APART))) * whole_fours(LENGTH := D2 * (APART + D1 * unless(APART))) * whole_fours(D3)
  columns: LINES * whole_fours(LENGTH) * left_of_fours(D3)
  single: LINES * left_of_fours(LENGTH) * D3
  blocks: LINES * fours(LENGTH)
  lines: LINES
--- */
#include "tilewright_turn.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Planes of an image become pixels. */
static void transpose_to_pixels(const T *data, T *transposed, int D0, int D1, int D2, int D3, int data_sD0,
                                int data_sD1, int data_sD3) {
    const int joined = data_sD1 == D2; /* lines that follow each other are one */
    const int lines = joined ? 1 : D1, length = joined ? D1 * D2 : D2;
    for (int i = 0; i < D0; i++) {
        for (int j = 0; j < lines; j++, transposed += (ptrdiff_t)length * D3)
            tw_turn_bytes(data + i * data_sD0 + j * data_sD1, data_sD3, transposed, D3, length, D3);
    }
}
