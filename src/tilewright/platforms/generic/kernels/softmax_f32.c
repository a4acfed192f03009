/* ---
op: Softmax
types: {X: float32, Y: float32}
when: {INNER: "== 1"}
epilogue: row
inplace: X
scratch: "AXIS*4"
# Powers, for which cores meet at the units that they share, sums, and a quotient.
cycles:
  elements: OUTER * AXIS
  meetings: one(PARTS) * FPU_OTHERS * OUTER * AXIS
  rows: OUTER
  behind: OUTER * AXIS * FUSED
  call: some(OUTER)
--- */
#include "tilewright_kernel.h"

static void softmax_f32(const float *X, void *Y, int OUTER, int AXIS, void *scratch, const struct Epilogue *epilogue) {
    float *row = scratch;
    float out[16];
    for (int outer = 0; outer < OUTER && AXIS > 0; outer++) {
        const ptrdiff_t at = (ptrdiff_t)outer * AXIS;
        const float *x = X + at;
        const float max = tw_max_f32(x, AXIS);
        for (int i = 0; i < AXIS; i++)
            row[i] = tw_expf(x[i] - max);
        const float scale = 1.0f / tw_sum_f32(row, AXIS);
        for (int i = 0; i < AXIS; i += 16) {
            const int count = tw_min(16, AXIS - i);
            for (int j = 0; j < count; j++)
                out[j] = row[i + j] * scale;
            STORE(epilogue, Y, out, at + i, 0, i, 1, count);
        }
    }
}
