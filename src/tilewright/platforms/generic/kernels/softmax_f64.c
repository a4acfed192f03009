/* ---
op: Softmax
types: {X: float64, Y: float64}
# Three loops over a line, one of them with powers, of which that of the largest element is at hand.
cycles:
  elements: OUTER * INNER * AXIS
  powers: OUTER * INNER * (AXIS - some(AXIS))
  lines: OUTER * INNER
  call: 1
--- */
#include "tilewright_kernel.h"

static void softmax_f64(const double *X, double *Y, int OUTER, int AXIS, int INNER) {
    for (int line = 0; line < OUTER * INNER; line++) {
        const ptrdiff_t start = (ptrdiff_t)(line / INNER) * AXIS * INNER + line % INNER;
        double top = AXIS > 0 ? X[start] : 0, sum = 0;
        for (int a = 1; a < AXIS; a++) {
            const double x = X[start + (ptrdiff_t)a * INNER];
            top = x > top ? x : top;
        }
        for (int a = 0; a < AXIS; a++) {
            const ptrdiff_t at = start + (ptrdiff_t)a * INNER;
            sum += Y[at] = exp(X[at] - top);
        }
        for (int a = 0; a < AXIS; a++)
            Y[start + (ptrdiff_t)a * INNER] /= sum;
    }
}
