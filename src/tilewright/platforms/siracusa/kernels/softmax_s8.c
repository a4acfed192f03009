/* ---
op: Softmax
types: {X: T, Y: float32}
T: [int8, uint8]
when: {INNER: "== 1"}
epilogue: row
inplace: X
# A row is looked at for its largest value, its sum and its results. Powers are those of all values, or of 256 distances.
cycles:
  values: OUTER * AXIS
  powers: min(OUTER * AXIS, 256)
  rows: OUTER
  sixteens: OUTER * sixteens(AXIS)
  behind: OUTER * AXIS * FUSED
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void softmax_s8(const T *X, void *Y, int OUTER, int AXIS, float x_scale, const struct Epilogue *epilogue) {
    /* Of every distance from the largest value of a row, or, where there are not as many values, of each of them. */
    float power[256];
    const int few = OUTER * AXIS <= 256;
    for (int i = 0; !few && i < 256; i++)
        power[i] = tw_expf((float)-i * x_scale);
    for (int outer = 0; outer < OUTER && AXIS > 0; outer++, X += AXIS) {
        int max = X[0];
        float sums[4] = {0}, out[16];
        for (int i = 1; i < AXIS; i++)
            max = tw_max(max, X[i]);
        for (int i = 0; few && i < AXIS; i++)
            power[i] = tw_expf((float)(X[i] - max) * x_scale);
        for (int i = 0; i < AXIS; i++)
            sums[i % 4] += power[few ? i : max - X[i]];
        const float scale = 1.0f / (sums[0] + sums[1] + sums[2] + sums[3]);
        for (int i = 0; i < AXIS; i += 16) {
            const int count = tw_min(16, AXIS - i);
            for (int j = 0; j < count; j++)
                out[j] = power[few ? i + j : max - X[i + j]] * scale;
            STORE(epilogue, Y, out, outer * AXIS + i, 0, i, 1, count);
        }
    }
}
