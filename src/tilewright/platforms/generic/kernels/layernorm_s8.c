/* ---
op: LayerNormalization
types: {X: T, Scale: float32, B: float32, Y: float32}
T: [int8, uint8]
when: {INNER: "== 1", AXIS: "<= 65536"}
epilogue: row
inplace: X
# A loop for both sums, another for results, sixteen at a time, and a root.
cycles:
  elements: OUTER * AXIS
  blocks: OUTER * sixteens(AXIS)
  rows: OUTER
  behind: OUTER * AXIS * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void layernorm_s8(const T *X, const float *Scale, const float *B, void *Y, int OUTER, int AXIS, float epsilon,
                         const struct Epilogue *epilogue) {
    float out[16];
    for (int outer = 0; outer < OUTER; outer++) {
        const ptrdiff_t at = (ptrdiff_t)outer * AXIS;
        const T *x = X + at;
        int32_t sum = 0;
        int64_t total = 0;
        for (int first = 0; first < AXIS; first += 16384) {
            const int last = tw_min(first + 16384, AXIS);
            int32_t squares = 0; /* of so few values that 32 bits hold them */
            for (int i = first; i < last; i++) {
                sum += x[i];
                squares += x[i] * x[i];
            }
            total += squares;
        }
        const float mean = (float)sum / (float)AXIS;
        const int64_t spread = total * AXIS - (int64_t)sum * sum;
        const float factor = 1.0f / sqrtf((float)spread / ((float)AXIS * (float)AXIS) + epsilon);
        for (int i = 0; i < AXIS; i += 16) {
            const int count = tw_min(16, AXIS - i);
            for (int j = 0; j < count; j++)
                out[j] = TW_FMA(((float)x[i + j] - mean) * factor, Scale[i + j], B ? B[i + j] : 0.0f);
            STORE(epilogue, Y, out, at + i, 0, i, 1, count);
        }
    }
}
