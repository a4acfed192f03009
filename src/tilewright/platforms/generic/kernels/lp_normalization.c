/* ---
op: LpNormalization
types: {X: T, Y: T}
T: [float32, float64]
# Sums, squares and a root where p is 2, and quotients, for which cores wait for each other; numbers may be
# doubles.
cycles:
  elements: OUTER * INNER * AXIS
  doubles: (DOUBLE := several(words(X_bytes))) * OUTER * INNER * AXIS
  waits: unless(DOUBLE) * one(PARTS) * OTHERS * OUTER * INNER * AXIS
  double_squares: DOUBLE * several(p) * OUTER * INNER * AXIS
  double_roots: DOUBLE * several(p) * OUTER * INNER
  call: 1
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef float T;
#endif

/* Each line divided by its norm; a line of zeros stays one. */
static void lp_normalization(const T *X, T *Y, int OUTER, int AXIS, int INNER, int p) {
    for (int o = 0; o < OUTER; o++) {
        for (int i = 0; i < INNER; i++) {
            const int start = o * AXIS * INNER + i;
            T sum = 0;
            for (int a = 0; a < AXIS; a++) {
                const T value = X[start + a * INNER];
                sum += p == 1 ? _Generic(value, float: fabsf, double: fabs)(value) : value * value;
            }
            const T norm = p == 1 ? sum : _Generic(sum, float: sqrtf, double: sqrt)(sum);
            for (int a = 0; a < AXIS; a++)
                Y[start + a * INNER] = norm > 0 ? X[start + a * INNER] / norm : norm;
        }
    }
}
