/* Sixteen-bit floats in storage: conversions to and from float, rounding to nearest even, in portable C. */
#ifndef TILEWRIGHT_HALF_H
#define TILEWRIGHT_HALF_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t tw_float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float tw_bits_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float tw_bfloat16_load(uint16_t bits) { return tw_bits_float((uint32_t)bits << 16); }

static inline uint16_t tw_bfloat16_store(float value) {
    const uint32_t bits = tw_float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((bits >> 16) | 0x40u); /* NaN stays NaN */
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static inline float tw_float16_load(uint16_t bits) {
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    const uint32_t magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u)
        return tw_bits_float(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude >= 0x0400u)
        return tw_bits_float(sign | ((magnitude << 13) + 0x38000000u));
    /* Subnormal halves are small multiples of 2^-24. */
    const float tiny = (float)magnitude * 5.9604644775390625e-8f;
    return sign ? -tiny : tiny;
}

static inline uint16_t tw_float16_store(float value) {
    const uint32_t bits = tw_float_bits(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00u); /* 65520 and above round to infinity */
    if (magnitude >= 0x38800000u) {
        const uint32_t rounded = magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u);
        return (uint16_t)(sign | rounded >> 13);
    }
    /* Adding 0.5 aligns a subnormal result at the last bits of the float, where the addition itself rounds to even. */
    const uint32_t aligned = tw_float_bits(tw_bits_float(magnitude) + 0.5f);
    return (uint16_t)(sign | (aligned - 0x3f000000u));
}

#endif
