/* ---
op: RMSNormalization
types: {X: float32, scale: float32, Y: float32}
when: {INNER: "== 1"}
epilogue: row
inplace: X
# Two loops over a row, and a root.
cycles:
  elements: OUTER * AXIS
  rows: OUTER
  behind: OUTER * AXIS * FUSED
  call: some(OUTER)
--- */
#include "tilewright_kernel.h"

static void rmsnorm_f32(const float *X, const float *scale, void *Y, int OUTER, int AXIS, float epsilon,
                        const struct Epilogue *epilogue) {
    float out[16];
    for (int outer = 0; outer < OUTER; outer++) {
        const ptrdiff_t at = (ptrdiff_t)outer * AXIS;
        const float *x = X + at;
        const float factor = 1.0f / sqrtf(tw_sum_squares_f32(x, 0.0f, AXIS) / (float)AXIS + epsilon);
        for (int i = 0; i < AXIS; i += 16) {
            const int count = tw_min(16, AXIS - i);
            for (int j = 0; j < count; j++)
                out[j] = x[i + j] * factor * scale[i + j];
            STORE(epilogue, Y, out, at + i, 0, i, 1, count);
        }
    }
}
