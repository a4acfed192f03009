/* ---
op: TopK
types: {X: T, Values: T, Indices: int64}
T: [float32, float64, int8, uint8, int16, uint16, int32, uint32, int64, uint64]
# Most elements are compared once. Some move the best ones so far: the more of these, and the fewer the later they come.
cycles:
  elements: OUTER * INNER * AXIS
  wide: several(words(X_bytes)) * OUTER * INNER * AXIS
  moved: OUTER * INNER * TOP * TOP * (AXIS - TOP) / max(AXIS, some(X_bytes))
  lines: OUTER * INNER
--- */
#include "tilewright_kernel.h"

/* The best elements so far stand sorted in the result; each element of the axis is inserted behind those it does not
 * beat. Most elements lose against the last one and cost one comparison. Equal elements keep the order of the axis. */
static void topk(const T *X, T *Values, int64_t *Indices, int OUTER, int AXIS, int INNER, int TOP, int largest) {
    for (int o = 0; o < OUTER; o++) {
        for (int i = 0; i < INNER; i++) {
            const T *line = X + (o * AXIS * INNER + i);
            T *best = Values + (o * TOP * INNER + i);
            int64_t *where = Indices + (o * TOP * INNER + i);
            int count = 0;
            for (int a = 0; a < AXIS; a++) {
                const T value = line[a * INNER];
                int place = count;
                while (place > 0 && (largest ? value > best[(place - 1) * INNER] : value < best[(place - 1) * INNER]))
                    place--;
                if (place == TOP)
                    continue;
                if (count < TOP)
                    count++;
                for (int k = count - 1; k > place; k--) {
                    best[k * INNER] = best[(k - 1) * INNER];
                    where[k * INNER] = where[(k - 1) * INNER];
                }
                best[place * INNER] = value;
                where[place * INNER] = a;
            }
        }
    }
}
