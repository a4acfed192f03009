/* ---
op: Softmax
types: {X: T, Y: float32}
T: [int8, uint8]
when: {INNER: "== 1"}
epilogue: lanes
cycles:
  lanes: OUTER * whole_fours(AXIS)
  rows: OUTER * (several(AXIS) + left_of_fours(AXIS))
  table: some(OUTER)
  behind: OUTER * AXIS * FUSED
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

TW_INLINE int largest(const T *x, int count) {
    const mve_pred16_t some = vctp8q((uint32_t)count);
    return (T)-1 < 0 ? vmaxvq_p_s8(-128, vldrbq_z_s8((const int8_t *)x, some), some)
                     : vmaxvq_p_u8(0, vldrbq_z_u8((const uint8_t *)x, some), some);
}

static void softmax_s8(const T *X, void *Y, int OUTER, int AXIS, float x_scale, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    float power[256]; /* of every distance from the largest value of a row */
    for (int i = 0; i < 256; i += 4) {
        const tw_reals distance = vcvtq_f32_s32(vreinterpretq_s32_u32(vidupq_n_u32((uint32_t)i, 1)));
        vstrwq_f32(power + i, tw_lanes_exp(vmaxnmq_f32(vmulq_n_f32(distance, -x_scale), vdupq_n_f32(-87.0f))));
    }
    for (int outer = 0; outer < OUTER && AXIS > 0; outer++) {
        const T *x = X + outer * AXIS;
        int max = x[0], i = 0;
        tw_reals sums = vdupq_n_f32(0.0f);
        for (i = 0; i < AXIS; i += 16)
            max = tw_max(max, largest(x + i, AXIS - i));
        for (i = 0; i + 4 <= AXIS; i += 4) {
            const tw_lanes distance = vaddq_n_s32(vnegq_s32(tw_lanes_at(x + i)), max);
            sums = vaddq_f32(sums, vldrwq_gather_shifted_offset_f32(power, vreinterpretq_u32_s32(distance)));
        }
        float sum =
            (vgetq_lane_f32(sums, 0) + vgetq_lane_f32(sums, 1)) + (vgetq_lane_f32(sums, 2) + vgetq_lane_f32(sums, 3));
        for (; i < AXIS; i++)
            sum += power[max - x[i]];
        const float scale = 1.0f / sum;
        i = 0;
#if STORE_HAS_LANES
        for (; i + 4 <= AXIS; i += 4) {
            const tw_lanes distance = vaddq_n_s32(vnegq_s32(tw_lanes_at(x + i)), max);
            const tw_reals each = vldrwq_gather_shifted_offset_f32(power, vreinterpretq_u32_s32(distance));
            STORE_LANES(&e, Y, vmulq_n_f32(each, scale), outer * AXIS + i, i);
        }
#endif
        for (int left = TW_LANES_REST(i, AXIS); left > 0; left--, i++) {
            const float each = power[max - x[i]] * scale;
            STORE(&e, Y, &each, outer * AXIS + i, 0, i, 1, 1);
        }
    }
}
