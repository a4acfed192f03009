/* ---
op: ITASoftmax
types: {x: int8, y: uint8}
# Three loops over a row, two of them in groups, and a quotient.
cycles:
  elements: OUTER * AXIS
  groups: OUTER * steps(AXIS, 16)
  rows: OUTER
  call: 1
--- */
#include "tilewright_kernel.h"

/* A value that lies `below` the maximum is halved that often. */
static inline uint32_t ita_softmax_halved(uint32_t value, int below) { return value >> tw_min(below, 31); }

static void ita_softmax(const int8_t *x, uint8_t *y, int OUTER, int AXIS) {
    for (int row = 0; row < OUTER; row++, x += AXIS, y += AXIS) {
        int top = -128; /* where the running maximum of the streaming unit begins */
        uint32_t sum = 0;
        for (int first = 0; first < AXIS; first += 16) {
            const int end = tw_min(first + 16, AXIS);
            int highest = top;
            for (int i = first; i < end; i++)
                highest = x[i] > highest ? x[i] : highest;
            sum = ita_softmax_halved(sum, highest - top);
            top = highest;
            for (int i = first; i < end; i++)
                sum += ita_softmax_halved(256, top - x[i]);
        }
        const uint32_t inverse = sum == 0 ? 0 : 65280u / sum;
        for (int i = 0; i < AXIS; i++)
            y[i] = (uint8_t)ita_softmax_halved(inverse, top - x[i]);
    }
}
