/* ---
op: TopK
types: {X: T, Values: T, Indices: int64}
T: [float32, float64, int8, uint8, int16, uint16, int32, uint32, int64, uint64]
# Elements come in any order. One that belongs to the best so far passes half of them, and so do all of the first TOP and
# TOP / a of those at place a behind them. Comparisons of doubles are calls on most machines.
cycles:
  elements: (ELEMENTS := (LINES := OUTER * INNER) * AXIS)
  passed: (PASSED := LINES * TOP * TOP * (some(TOP) + log(AXIS / (TOP + none(TOP)) * AXIS / (TOP + none(TOP)))))
  wide: (WIDE := several(words(X_bytes))) * ELEMENTS
  soft: WIDE * X_float * ELEMENTS
  soft_passed: WIDE * X_float * PASSED
  lines: LINES
--- */
#include "tilewright_kernel.h"

/* The best elements so far stand sorted in the result. An element that does not beat the last of them costs one
 * comparison; another one moves those that it beats by one place. Equal elements keep the order of the axis.
 *
 * The comparison ends the loop that moves them. Were moving a loop of its own, gcc's predictive commoning would take
 * values and places for one array where they lie side by side, and read ahead what another core may be writing. */
static void topk(const T *X, T *Values, int64_t *Indices, int OUTER, int AXIS, int INNER, int TOP, int largest) {
    if (TOP == 0)
        return;
    for (int o = 0; o < OUTER; o++) {
        for (int i = 0; i < INNER; i++) {
            const T *line = X + (o * AXIS * INNER + i);
            T *best = Values + (o * TOP * INNER + i);
            int64_t *where = Indices + (o * TOP * INNER + i);
            T last = 0;
            for (int a = 0; a < AXIS; a++) {
                const T value = line[a * INNER];
                if (a >= TOP && !(largest ? value > last : value < last))
                    continue;
                const int count = a < TOP ? a : TOP - 1;
                T *place = best + count * INNER;
                int64_t *number = where + count * INNER;
                for (; place != best; place -= INNER, number -= INNER) {
                    const T other = *(place - INNER);
                    if (!(largest ? value > other : value < other))
                        break;
                    *place = other;
                    *number = *(number - INNER);
                }
                *place = value;
                *number = a;
                last = best[count * INNER];
            }
        }
    }
}
