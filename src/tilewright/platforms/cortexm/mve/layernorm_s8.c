/* ---
op: LayerNormalization
types: {X: T, Scale: float32, B: float32, Y: float32}
T: [int8, uint8]
when: {INNER: "== 1", AXIS: "<= 32768"}
epilogue: lanes
cycles:
  eights: OUTER * eights(AXIS)
  lanes: OUTER * whole_fours(AXIS)
  single: OUTER * left_of_fours(AXIS)
  rows: OUTER
  behind: OUTER * AXIS * FUSED
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void layernorm_s8(const T *X, const float *Scale, const float *B, void *Y, int OUTER, int AXIS, float epsilon,
                         const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    for (int outer = 0; outer < OUTER; outer++) {
        const T *x = X + outer * AXIS;
        int32_t sum = 0, squares = 0; /* of so few values that 32 bits hold them */
        int i;
        for (i = 0; i < AXIS; i += 8) {
            const mve_pred16_t some = vctp16q((uint32_t)(AXIS - i));
            const int16x8_t values = TW_FOR_BYTES(x, tw_eight)(x + i, some);
            sum = vaddvaq_p_s16(sum, values, some);
            squares = vmladavaq_p_s16(squares, values, values, some);
        }
        const float mean = (float)sum / (float)AXIS;
        const int64_t spread = (int64_t)squares * AXIS - (int64_t)sum * sum;
        const float factor = 1.0f / sqrtf((float)spread / ((float)AXIS * (float)AXIS) + epsilon);
        i = 0;
#if STORE_HAS_LANES
        for (; i + 4 <= AXIS; i += 4) {
            const tw_reals even = vmulq_n_f32(vsubq_n_f32(vcvtq_f32_s32(tw_lanes_at(x + i)), mean), factor);
            const tw_reals added = B ? vldrwq_f32(B + i) : vdupq_n_f32(0.0f);
            STORE_LANES(&e, Y, vfmaq_f32(added, even, vldrwq_f32(Scale + i)), outer * AXIS + i, i);
        }
#endif
        for (int left = TW_LANES_REST(i, AXIS); left > 0; left--, i++) {
            const float each = TW_FMA(((float)x[i] - mean) * factor, Scale[i], B ? B[i] : 0.0f);
            STORE(&e, Y, &each, outer * AXIS + i, 0, i, 1, 1);
        }
    }
}
