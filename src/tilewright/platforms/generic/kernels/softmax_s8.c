/* ---
op: Softmax
types: {X: T, Y: float32}
T: [int8, uint8]
when: {INNER: "== 1"}
epilogue: row
inplace: X
# A table of powers, which is looked up twice for each element: of all distances, or of those that few elements have.
cycles:
  elements: OUTER * AXIS
  powers: min(OUTER * AXIS, 256)
  rows: OUTER
  behind: OUTER * AXIS * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void softmax_s8(const T *X, void *Y, int OUTER, int AXIS, float x_scale, const struct Epilogue *epilogue) {
    float power[256]; /* of every distance from the largest value of a row */
    float out[16];
    const int few = OUTER * AXIS <= 256;
    for (int i = 0; !few && i < 256; i++)
        power[i] = tw_expf((float)-i * x_scale);
    for (int outer = 0; outer < OUTER && AXIS > 0; outer++) {
        const ptrdiff_t at = (ptrdiff_t)outer * AXIS;
        const T *x = X + at;
        int max = x[0];
        float sums[4] = {0};
        for (int i = 1; i < AXIS; i++)
            max = tw_max(max, x[i]);
        for (int i = 0; few && i < AXIS; i++)
            power[max - x[i]] = tw_expf((float)(x[i] - max) * x_scale);
        for (int i = 0; i < AXIS; i++)
            sums[i % 4] += power[max - x[i]];
        const float scale = 1.0f / (sums[0] + sums[1] + sums[2] + sums[3]);
        for (int i = 0; i < AXIS; i += 16) {
            const int count = tw_min(16, AXIS - i);
            for (int j = 0; j < count; j++)
                out[j] = power[max - x[i + j]] * scale;
            STORE(epilogue, Y, out, at + i, 0, i, 1, count);
        }
    }
}
