/* ---
op: iPowers
types: {X: T, table: uint8, Y: uint8, total: int32}
T: [int8, uint8, int16, uint16, int32]
# Two loops over a row.
cycles:
  elements: OUTER * ROW * AXIS
  rows: OUTER * ROW
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int16_t T;
#endif

static void ipowers(const T *X, const uint8_t *table, uint8_t *Y, int32_t *total, int OUTER, int ROW, int AXIS,
                    int table_n0, int causal) {
    const uint32_t last = (uint32_t)table_n0 - 1;
    for (int row = 0; row < OUTER * ROW; row++, X += AXIS, Y += AXIS) {
        const int count = causal ? tw_min(AXIS, tw_max(0, AXIS - ROW + row % ROW + 1)) : AXIS;
        int32_t sum = 0;
        T top = count > 0 ? X[0] : 0;
        for (int i = 1; i < count; i++)
            top = X[i] > top ? X[i] : top;
        for (int i = 0; i < count; i++) {
            const uint32_t below = (uint32_t)top - (uint32_t)X[i];
            Y[i] = table[below < last ? below : last];
            sum += Y[i];
        }
        for (int i = tw_max(count, 0); i < AXIS; i++)
            Y[i] = 0;
        total[row] = sum;
    }
}
