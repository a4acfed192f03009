/* ---
op: LayerNormalization
types: {X: float32, Scale: float32, B: float32, Y: float32}
when: {INNER: "== 1"}
epilogue: row
inplace: X
# Sums of sixteen elements at a time, what is left one by one, and a root and quotients, for which cores
# wait for each other.
cycles:
  blocks: OUTER * whole_sixteens(AXIS)
  left: OUTER * left_of_sixteens(AXIS)
  rows: OUTER
  waits: one(PARTS) * OTHERS * OUTER
  behind: OUTER * AXIS * FUSED
  call: some(OUTER)
--- */
#include "tilewright_kernel.h"

static void layernorm_f32(const float *X, const float *Scale, const float *B, void *Y, int OUTER, int AXIS,
                          float epsilon, const struct Epilogue *epilogue) {
    float out[16];
    for (int outer = 0; outer < OUTER; outer++) {
        const ptrdiff_t at = (ptrdiff_t)outer * AXIS;
        const float *x = X + at;
        const float mean = tw_sum_f32(x, AXIS) / (float)AXIS;
        const float factor = 1.0f / sqrtf(tw_sum_squares_f32(x, mean, AXIS) / (float)AXIS + epsilon);
        for (int i = 0; i < AXIS; i += 16) {
            const int count = tw_min(16, AXIS - i);
            for (int j = 0; j < count; j++)
                out[j] = TW_FMA((x[i + j] - mean) * factor, Scale[i + j], B ? B[i + j] : 0.0f);
            STORE(epilogue, Y, out, at + i, 0, i, 1, count);
        }
    }
}
