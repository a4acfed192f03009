/* ---
op: LpNormalization
types: {X: float32, Y: float32}
cycles: "OUTER*AXIS*INNER*6"
--- */
#include "tilewright_kernel.h"

/* Each line divided by its norm; a line of zeros stays one. */
static void lp_normalization_f32(const float *X, float *Y, int OUTER, int AXIS, int INNER, int p) {
    for (int o = 0; o < OUTER; o++) {
        for (int i = 0; i < INNER; i++) {
            const int start = o * AXIS * INNER + i;
            float sum = 0;
            for (int a = 0; a < AXIS; a++) {
                const float value = X[start + a * INNER];
                sum += p == 1 ? fabsf(value) : value * value;
            }
            const float norm = p == 1 ? sum : sqrtf(sum);
            for (int a = 0; a < AXIS; a++)
                Y[start + a * INNER] = norm > 0 ? X[start + a * INNER] / norm : norm;
        }
    }
}
