/* Sixteen-bit floats in storage: conversions to and from float, rounding to nearest even. The FPU has those of float16. */
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

/* fmv.h.x, fcvt.s.h and back. */
static inline float tw_float16_load(uint16_t bits) {
    float value;
    __asm__(".insn r 0x53, 0, 0x7A, %0, %1, x0\n.insn r 0x53, 0, 0x20, %0, %0, x2" : "=f"(value) : "r"(bits));
    return value;
}

static inline uint16_t tw_float16_store(float value) {
    uint32_t bits;
    __asm__(".insn r 0x53, 0, 0x22, %1, %1, x0\n.insn r 0x53, 0, 0x72, %0, %1, x0" : "=r"(bits), "+f"(value));
    return (uint16_t)bits;
}

#endif
