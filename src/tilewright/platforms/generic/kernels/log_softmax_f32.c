/* ---
op: LogSoftmax
types: {X: float32, Y: float32}
cycles: "OUTER*AXIS*INNER*12"
--- */
#include "tilewright_kernel.h"

/* Relative to the largest element of a line no power overflows, and their sum is at least one. */
static void log_softmax_f32(const float *X, float *Y, int OUTER, int AXIS, int INNER) {
    for (int o = 0; o < OUTER; o++) {
        for (int i = 0; i < INNER; i++) {
            const int start = o * AXIS * INNER + i;
            float top = AXIS > 0 ? X[start] : 0;
            for (int a = 1; a < AXIS; a++)
                top = X[start + a * INNER] > top ? X[start + a * INNER] : top;
            float sum = 0;
            for (int a = 0; a < AXIS; a++)
                sum += tw_expf(X[start + a * INNER] - top);
            const float shift = tw_logf(sum);
            for (int a = 0; a < AXIS; a++)
                Y[start + a * INNER] = X[start + a * INNER] - top - shift;
        }
    }
}
