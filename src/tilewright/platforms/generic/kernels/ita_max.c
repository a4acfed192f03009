/* ---
op: ITAMax
types: {x: T, y: U}
T: [int8, uint8, int16, uint16, int32]
U: [uint8, uint16]
# Three loops over a row, and a quotient. Distances of bytes are short.
cycles:
  elements: OUTER * AXIS
  wide: several(x_bytes) * OUTER * AXIS
  signed: x_signed * OUTER * AXIS
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef uint8_t U;
#endif

/* How often 256 is halved for a value that lies `below` the maximum. */
static inline int ita_max_halvings(int64_t below) { return below < 992 ? (int)((below + 16) >> 5) : 31; }

static void ita_max(const T *x, U *y, int OUTER, int AXIS, int n_levels) {
    for (int row = 0; row < OUTER; row++, x += AXIS, y += AXIS) {
        T top = x[0];
        int32_t sum = 0;
        for (int i = 1; i < AXIS; i++)
            top = x[i] > top ? x[i] : top;
        for (int i = 0; i < AXIS; i++)
            sum += 256 >> ita_max_halvings((int64_t)top - x[i]);
        const int32_t inverse = (n_levels - 1) * 256 / sum;
        for (int i = 0; i < AXIS; i++)
            y[i] = (U)(inverse >> ita_max_halvings((int64_t)top - x[i]));
    }
}
