/* ---
op: Softmax
types: {X: float32, Y: float32}
when: {INNER: "> 1"}
# Lines of 64 columns at a time, all of which have a sum of their own.
cycles:
  elements: OUTER * INNER * AXIS
  lines: OUTER * AXIS * fours(sixteens(INNER))
  columns: OUTER * INNER
  call: 1
--- */
#include "tilewright_kernel.h"

static void softmax_inner_f32(const float *X, float *Y, int OUTER, int AXIS, int INNER) {
    float max[64], sum[64];
    for (int outer = 0; outer < OUTER; outer++) {
        for (int first = 0; first < INNER; first += 64) {
            const int count = tw_min(64, INNER - first);
            const float *x = X + (ptrdiff_t)outer * AXIS * INNER + first;
            float *y = Y + (ptrdiff_t)outer * AXIS * INNER + first;
            for (int j = 0; j < count; j++) {
                max[j] = x[j];
                sum[j] = 0.0f;
            }
            for (int i = 1; i < AXIS; i++) {
                for (int j = 0; j < count; j++)
                    max[j] = max[j] > x[(ptrdiff_t)i * INNER + j] ? max[j] : x[(ptrdiff_t)i * INNER + j];
            }
            for (int i = 0; i < AXIS; i++) {
                for (int j = 0; j < count; j++) {
                    const float e = tw_expf(x[(ptrdiff_t)i * INNER + j] - max[j]);
                    y[(ptrdiff_t)i * INNER + j] = e;
                    sum[j] += e;
                }
            }
            for (int j = 0; j < count; j++)
                sum[j] = 1.0f / sum[j];
            for (int i = 0; i < AXIS; i++) {
                for (int j = 0; j < count; j++)
                    y[(ptrdiff_t)i * INNER + j] *= sum[j];
            }
        }
    }
}
