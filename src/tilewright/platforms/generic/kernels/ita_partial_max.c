/* ---
op: ITAPartialMax
types: {x: T, y: U}
T: [int8, uint8, int16, uint16, int32]
U: [int8, uint8, int16]
# Three loops over a row, two of them in groups, and a quotient. Distances of bytes are short.
cycles:
  elements: OUTER * AXIS
  wide: several(x_bytes) * OUTER * AXIS
  groups: OUTER * steps(AXIS, group_width)
  rows: OUTER
  call: 1
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef uint8_t U;
#endif

/* How often a term is halved for a value that lies `below` the maximum. */
static inline int ita_partial_max_halvings(int64_t below) { return below < 992 ? (int)((below + 16) >> 5) : 31; }

static void ita_partial_max(const T *x, U *y, int OUTER, int AXIS, int group_width, int n_levels, int term_bits) {
    for (int row = 0; row < OUTER; row++, x += AXIS, y += AXIS) {
        int64_t top = -128; /* where the running maximum of the streaming unit begins */
        int32_t sum = 0;
        for (int first = 0; first < AXIS; first += group_width) {
            const int end = tw_min(first + group_width, AXIS);
            int64_t highest = x[first];
            for (int i = first + 1; i < end; i++)
                highest = x[i] > highest ? x[i] : highest;
            if (highest > top) {
                sum >>= ita_partial_max_halvings(highest - top);
                top = highest;
            }
            for (int i = first; i < end; i++)
                sum += (1 << term_bits) >> ita_partial_max_halvings(top - x[i]);
        }
        const int32_t inverse = ((n_levels / 2 - 1) << term_bits) / tw_max(sum, 1);
        for (int i = 0; i < AXIS; i++)
            y[i] = (U)(inverse >> ita_partial_max_halvings(top - x[i]));
    }
}
