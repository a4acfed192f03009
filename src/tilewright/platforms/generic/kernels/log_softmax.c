/* ---
op: LogSoftmax
types: {X: T, Y: T}
T: [float32, float64]
# Three loops over a line, one of them with powers, and a logarithm. Numbers may be doubles, whose power of 0 is at hand.
cycles:
  elements: OUTER * INNER * AXIS
  doubles: (DOUBLE := several(words(X_bytes))) * OUTER * INNER * (AXIS - some(AXIS))
  lines: OUTER * INNER
  double_lines: DOUBLE * OUTER * INNER
  call: 1
--- */
#include "tilewright_activation.h"

#ifndef TW_GENERATED
typedef float T;
#endif

/* Relative to the largest element of a line no power overflows, and their sum is at least one. */
static void log_softmax(const T *X, T *Y, int OUTER, int AXIS, int INNER) {
    for (int o = 0; o < OUTER; o++) {
        for (int i = 0; i < INNER; i++) {
            const int start = o * AXIS * INNER + i;
            T top = AXIS > 0 ? X[start] : 0, sum = 0;
            for (int a = 1; a < AXIS; a++)
                top = X[start + a * INNER] > top ? X[start + a * INNER] : top;
            for (int a = 0; a < AXIS; a++)
                sum += TW_EXP(X[start + a * INNER] - top);
            const T shift = _Generic(sum, float: tw_logf, double: log)(sum);
            for (int a = 0; a < AXIS; a++)
                Y[start + a * INNER] = X[start + a * INNER] - top - shift;
        }
    }
}
