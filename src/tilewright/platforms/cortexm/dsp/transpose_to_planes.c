/* ---
op: Transpose
types: {data: T, transposed: T}
T: [int8, uint8]
when: {D3: ">= 1", D1: ">= 4", data_sD1: "== 1", data_sD2: "data_sD2 == D3*data_sD3"}
strided: [data]
cycles:
  squares: D0 * whole_fours(D1) * whole_fours(D2*D3)
  columns: D0 * whole_fours(D1) * left_of_fours(D2*D3)
  single: D0 * left_of_fours(D1) * D2*D3
  blocks: D0 * fours(D1)
--- */
#include "tilewright_turn.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Pixels of an image become planes. */
static void transpose_to_planes(const T *data, T *transposed, int D0, int D1, int D2, int D3, int data_sD0,
                                int data_sD3) {
    for (int i = 0; i < D0; i++, transposed += (ptrdiff_t)D1 * D2 * D3)
        tw_turn_bytes(data + i * data_sD0, data_sD3, transposed, (ptrdiff_t)D2 * D3, D1, D2 * D3);
}
