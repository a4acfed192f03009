/* Four neighbours in a Helium vector: what is fused behind a kernel is computed for them at once. */
#ifndef TILEWRIGHT_LANES_H
#define TILEWRIGHT_LANES_H

#include "tilewright_kernel.h"

#include <arm_mve.h>

/* Four neighbours. Where a function has two operands, one may be a number that is the same for all. */
typedef int32x4_t tw_lanes;
typedef float32x4_t tw_reals;

#define TW_LANES_BINARY(NAME)                                                                                          \
    TW_INLINE tw_lanes tw_lanes_##NAME##_ii(tw_lanes a, tw_lanes b) { return v##NAME##q_s32(a, b); }                   \
    TW_INLINE tw_lanes tw_lanes_##NAME##_in(tw_lanes a, int32_t b) { return v##NAME##q_n_s32(a, b); }                  \
    TW_INLINE tw_reals tw_lanes_##NAME##_ff(tw_reals a, tw_reals b) { return v##NAME##q_f32(a, b); }                   \
    TW_INLINE tw_reals tw_lanes_##NAME##_fn(tw_reals a, float b) { return v##NAME##q_n_f32(a, b); }
TW_LANES_BINARY(add)
TW_LANES_BINARY(sub)
TW_LANES_BINARY(mul)
TW_INLINE tw_lanes tw_lanes_add_ni(int32_t a, tw_lanes b) { return vaddq_n_s32(b, a); }
TW_INLINE tw_lanes tw_lanes_mul_ni(int32_t a, tw_lanes b) { return vmulq_n_s32(b, a); }
TW_INLINE tw_lanes tw_lanes_sub_ni(int32_t a, tw_lanes b) { return vsubq_s32(vdupq_n_s32(a), b); }
TW_INLINE tw_reals tw_lanes_add_nf(float a, tw_reals b) { return vaddq_n_f32(b, a); }
TW_INLINE tw_reals tw_lanes_mul_nf(float a, tw_reals b) { return vmulq_n_f32(b, a); }
TW_INLINE tw_reals tw_lanes_sub_nf(float a, tw_reals b) { return vsubq_f32(vdupq_n_f32(a), b); }
#define TW_LANES_OF(NAME, a, b)                                                                                        \
    _Generic((a),                                                                                                      \
        tw_lanes: _Generic((b), tw_lanes: NAME##_ii, default: NAME##_in),                                              \
        tw_reals: _Generic((b), tw_reals: NAME##_ff, default: NAME##_fn),                                              \
        default: _Generic((b), tw_lanes: NAME##_ni, default: NAME##_nf))(a, b)
#define tw_lanes_add(a, b) TW_LANES_OF(tw_lanes_add, a, b)
#define tw_lanes_sub(a, b) TW_LANES_OF(tw_lanes_sub, a, b)
#define tw_lanes_mul(a, b) TW_LANES_OF(tw_lanes_mul, a, b)
TW_INLINE tw_reals tw_lanes_real(tw_lanes a) { return vcvtq_f32_s32(a); }

/* Four of a tensor, and four into one. */
TW_INLINE tw_lanes tw_lanes_at_s8(const int8_t *x) { return vldrbq_s32(x); }
TW_INLINE tw_lanes tw_lanes_at_u8(const uint8_t *x) { return vreinterpretq_s32_u32(vldrbq_u32(x)); }
TW_INLINE tw_lanes tw_lanes_at_s16(const int16_t *x) { return vldrhq_s32(x); }
TW_INLINE tw_lanes tw_lanes_at_s32(const int32_t *x) { return vldrwq_s32(x); }
TW_INLINE tw_reals tw_lanes_at_f32(const float *x) { return vldrwq_f32(x); }
#define tw_lanes_at(x)                                                                                                 \
    _Generic((x),                                                                                                      \
        const int8_t *: tw_lanes_at_s8,                                                                                \
        int8_t *: tw_lanes_at_s8,                                                                                      \
        const uint8_t *: tw_lanes_at_u8,                                                                               \
        uint8_t *: tw_lanes_at_u8,                                                                                     \
        const int16_t *: tw_lanes_at_s16,                                                                              \
        const int32_t *: tw_lanes_at_s32,                                                                              \
        int32_t *: tw_lanes_at_s32,                                                                                    \
        const float *: tw_lanes_at_f32,                                                                                \
        float *: tw_lanes_at_f32)(x)
TW_INLINE void tw_lanes_put_s8(int8_t *y, tw_lanes v) { vstrbq_s32(y, v); }
TW_INLINE void tw_lanes_put_u8(uint8_t *y, tw_lanes v) { vstrbq_u32(y, vreinterpretq_u32_s32(v)); }
TW_INLINE void tw_lanes_put_s32(int32_t *y, tw_lanes v) { vstrwq_s32(y, v); }
TW_INLINE void tw_lanes_put_f32(float *y, tw_reals v) { vstrwq_f32(y, v); }
#define tw_lanes_put(y, v)                                                                                             \
    _Generic((y),                                                                                                      \
        int8_t *: tw_lanes_put_s8,                                                                                     \
        uint8_t *: tw_lanes_put_u8,                                                                                    \
        int32_t *: tw_lanes_put_s32,                                                                                   \
        float *: tw_lanes_put_f32)(y, v)

/* Limits; NaN stays what it is. */
TW_INLINE tw_lanes tw_lanes_at_least_in(tw_lanes a, int32_t b) { return vmaxq_s32(a, vdupq_n_s32(b)); }
TW_INLINE tw_lanes tw_lanes_at_most_in(tw_lanes a, int32_t b) { return vminq_s32(a, vdupq_n_s32(b)); }
/* The compiler would move predicates to core registers and back. */
#define TW_LANES_LIMIT(relation)                                                                                       \
    __asm__("vcmp.f32 " relation ", %q0, %1\nvpsel %q0, %q2, %q0" : "+w"(a) : "r"(b), "w"(vdupq_n_f32(b)) : "p0")
TW_INLINE tw_reals tw_lanes_at_least_fn(tw_reals a, float b) {
    TW_LANES_LIMIT("lt");
    return a;
}
TW_INLINE tw_reals tw_lanes_at_most_fn(tw_reals a, float b) {
    TW_LANES_LIMIT("gt");
    return a;
}
#define tw_lanes_at_least(a, b) _Generic((a), tw_lanes: tw_lanes_at_least_in, tw_reals: tw_lanes_at_least_fn)(a, b)
#define tw_lanes_at_most(a, b) _Generic((a), tw_lanes: tw_lanes_at_most_in, tw_reals: tw_lanes_at_most_fn)(a, b)

/* Entries of a table, which begins with that of `-first`. */
TW_INLINE tw_lanes tw_lanes_entry_s8(const int8_t *table, tw_lanes x, int first) {
    return vldrbq_gather_offset_s32(table + first, vreinterpretq_u32_s32(x));
}
TW_INLINE tw_lanes tw_lanes_entry_u8(const uint8_t *table, tw_lanes x, int first) {
    return vreinterpretq_s32_u32(vldrbq_gather_offset_u32(table + first, vreinterpretq_u32_s32(x)));
}
#define tw_lanes_entry(table, x, first)                                                                                \
    _Generic((table), const int8_t *: tw_lanes_entry_s8, const uint8_t *: tw_lanes_entry_u8)(table, x, first)

/* round(x / scale) + zero within limits. `high` + `low` is the reciprocal of the scale to twice the digits: a product with it
 * is a neighbour of the quotient, and what then remains tells which one (Markstein). That is exact unless all digits of the
 * scale are ones. Limits hold before the division, too; the lower one comes first, and NaN becomes it. */
TW_INLINE tw_lanes tw_lanes_quantised(tw_reals x, float scale, int zero, float lo, float hi) {
    const float high = 1.0f / scale, low = TW_FMA(-scale, high, 1.0f) * high;
    const tw_reals lowest = vdupq_n_f32((lo - (float)zero) * scale), highest = vdupq_n_f32((hi - (float)zero) * scale);
    const tw_reals limited = vminnmq_f32(vmaxnmq_f32(x, lowest), highest);
    const tw_reals near = vfmaq_n_f32(vmulq_n_f32(limited, low), limited, high);
    const tw_reals quotient = vfmaq_n_f32(near, vfmaq_n_f32(limited, near, -scale), high);
    return vaddq_n_s32(vcvtnq_s32_f32(quotient), zero);
}

/* value / divisor for values of less than 31 bits, toward zero, by UINT32_MAX / divisor; see tw_divide. */
TW_INLINE tw_lanes tw_lanes_divide(tw_lanes value, int32_t divisor, uint32_t reciprocal) {
    const uint32x4_t size = vreinterpretq_u32_s32(vabsq_s32(value));
    const uint32x4_t low = vmulhq_u32(size, vdupq_n_u32(reciprocal)); /* right, or one too low */
    const tw_lanes rest = vreinterpretq_s32_u32(vsubq_u32(size, vmulq_n_u32(low, (uint32_t)divisor)));
    const tw_lanes less = vshrq_n_s32(vsubq_n_s32(rest, divisor), 31); /* -1 where it is right */
    const tw_lanes quotient = vaddq_n_s32(vaddq_s32(vreinterpretq_s32_u32(low), less), 1);
    const tw_lanes sign = vshrq_n_s32(value, 31);
    return vsubq_s32(veorq_s32(quotient, sign), sign);
}

/* tw_expf of four numbers from -87 to 0. */
TW_INLINE tw_reals tw_lanes_exp(tw_reals x) {
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer, found in the low bits */
    const tw_reals shifted = vfmasq_n_f32(x, vdupq_n_f32(1.44269504f), magic), n = vsubq_n_f32(shifted, magic);
    const tw_reals r = vfmaq_n_f32(vfmaq_n_f32(x, n, -0.693145752f), n, -1.42860677e-6f);
    tw_reals p = vfmaq_n_f32(vdupq_n_f32(8.3337e-3f), r, 1.39824e-3f);
    p = vfmasq_n_f32(p, r, 4.16665e-2f);
    p = vfmasq_n_f32(p, r, 0.166666657f);
    p = vfmasq_n_f32(p, r, 0.5f);
    p = vfmasq_n_f32(p, r, 1.0f);
    p = vfmasq_n_f32(p, r, 1.0f);
    const tw_lanes power = vshlq_n_s32(vreinterpretq_s32_f32(shifted), 23); /* its upper bits fall off */
    return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(p), power));
}

/* How many vectors have left of a row of `count` at `i`; the compiler sees that they are few. */
#define TW_LANES_REST(i, count) (STORE_HAS_LANES ? (count) & 3 : (count) - (i))

/* Eight bytes, or fewer. */
TW_INLINE int16x8_t tw_eight_s8(const int8_t *x, mve_pred16_t some) { return vldrbq_z_s16(x, some); }
TW_INLINE int16x8_t tw_eight_u8(const uint8_t *x, mve_pred16_t some) {
    return vreinterpretq_s16_u16(vldrbq_z_u16(x, some));
}

/* What the functions of the same names do with one number; see tilewright_kernel.h. */
TW_INLINE tw_lanes tw_lanes_clamp(tw_lanes x, int32_t lo, int32_t hi) {
    return vminq_s32(vmaxq_s32(x, vdupq_n_s32(lo)), vdupq_n_s32(hi));
}
TW_INLINE tw_lanes tw_lanes_scaled(tw_lanes x, tw_reals factor, int32_t zero) {
    float magic = 12582912.0f; /* 1.5 * 2^23 */
    TW_KEEP(magic);
    const tw_reals sum = vfmasq_n_f32(vcvtq_f32_s32(x), factor, magic);
    return vaddq_n_s32(vreinterpretq_s32_f32(sum), zero - 0x4B400000);
}
TW_INLINE tw_lanes tw_lanes_scale_n(tw_lanes x, int32_t mul, int shift, int32_t zero) {
    return tw_lanes_scaled(x, vdupq_n_f32(tw_factor(mul, shift)), zero);
}
TW_INLINE tw_lanes tw_lanes_scale_i(tw_lanes x, tw_lanes mul, int shift, int32_t zero) {
    return tw_lanes_scaled(x, vmulq_n_f32(vcvtq_f32_s32(mul), tw_factor(1, shift)), zero);
}
#define tw_lanes_scale(x, mul, shift, zero)                                                                            \
    _Generic((mul), tw_lanes: tw_lanes_scale_i, default: tw_lanes_scale_n)(x, mul, shift, zero)
#define tw_lanes_sum_rounded(a, b, shift) vrshlq_n_s32(tw_lanes_add(a, b), -(shift))
TW_INLINE tw_lanes tw_lanes_odd(tw_lanes total, int shift) {
    return vandq_s32(vshlq_r_s32(total, -shift), vdupq_n_s32(1));
}
TW_INLINE tw_lanes tw_lanes_half_to_odd(tw_lanes total, int shift) {
    return vrshlq_n_s32(vsubq_s32(total, tw_lanes_odd(total, shift)), -shift);
}
TW_INLINE tw_lanes tw_lanes_half_to_even(tw_lanes total, int shift) {
    return vrshlq_n_s32(vaddq_s32(total, tw_lanes_odd(total, shift)), -shift);
}

#endif
