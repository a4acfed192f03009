/* ---
op: RMSNormalization
types: {X: float64, scale: float64, Y: float64}
# Two loops over a row, and a root.
cycles:
  elements: OUTER * AXIS
  rows: OUTER
  call: 1
--- */
#include "tilewright_kernel.h"

static void rmsnorm_f64(const double *X, const double *scale, double *Y, int OUTER, int AXIS, double epsilon) {
    for (int row = 0; row < OUTER; row++, X += AXIS, Y += AXIS) {
        double squares = 0;
        for (int i = 0; i < AXIS; i++)
            squares += X[i] * X[i];
        const double inverse = 1 / sqrt(squares / AXIS + epsilon);
        for (int i = 0; i < AXIS; i++)
            Y[i] = X[i] * inverse * scale[i];
    }
}
