/* ---
op: Hardmax
types: {X: T, Y: T}
T: [float32, float64]
# Elements behind the first are compared; numbers may be doubles.
cycles:
  compared: OUTER * INNER * (LATER := AXIS - some(AXIS))
  double_compared: several(words(X_bytes)) * OUTER * INNER * LATER
  lines: OUTER * INNER
  call: 1
--- */
#include "tilewright_kernel.h"

/* One at the first largest element of each line, zero elsewhere. */
static void hardmax(const T *X, T *Y, int OUTER, int AXIS, int INNER) {
    for (int o = 0; o < OUTER; o++) {
        for (int i = 0; i < INNER; i++) {
            const int start = o * AXIS * INNER + i;
            int best = 0;
            for (int a = 1; a < AXIS; a++) {
                if (X[start + a * INNER] > X[start + best * INNER])
                    best = a;
            }
            for (int a = 0; a < AXIS; a++)
                Y[start + a * INNER] = a == best ? 1 : 0;
        }
    }
}
