/* Sums become bytes: what tw_scale and tw_clamp do, in floats, which are in integer registers here. */
#ifndef TILEWRIGHT_SCALE_H
#define TILEWRIGHT_SCALE_H

#include <stdint.h>

/* What is fused behind a kernel, for four channels: factors are floats. */
struct tw_pool_scale {
    int32_t added[4];
    float factors[4];
    uint32_t zero;
};
#define TW_POOL_SCALE_OF(e, channel)                                                                                   \
    {{STORE_ADDED(e, (channel)), STORE_ADDED(e, (channel) + 1), STORE_ADDED(e, (channel) + 2),                         \
      STORE_ADDED(e, (channel) + 3)},                                                                                  \
     {STORE_FACTOR(e, (channel)), STORE_FACTOR(e, (channel) + 1), STORE_FACTOR(e, (channel) + 2),                      \
      STORE_FACTOR(e, (channel) + 3)},                                                                                 \
     (uint32_t)STORE_ZERO(e)}

/* fcvt.s.w, fmadd.s, p.clip or p.clipu: a fused product rounds once, at the weight of the last bit of `magic`, which is 1. */
static inline __attribute__((always_inline)) char tw_pool_byte(const struct tw_pool_scale *scale, const int is_signed,
                                                               int i, int32_t sum) {
    const uint32_t magic = 0x4B400000u /* 1.5 * 2^23 */;
    uint32_t x;
    __asm__(".insn r 0x53, 0, 0x68, %0, %1, x0" : "=r"(x) : "r"(sum + scale->added[i]));
    __asm__(".insn r4 0x43, 0, 0, %0, %1, %2, %3" : "=r"(x) : "r"(x), "r"(scale->factors[i]), "r"(magic));
    if (is_signed)
        __asm__(".insn r 0x33, 1, 0x0A, %0, %1, x8" : "=r"(x) : "r"(x + (scale->zero - magic)));
    else
        __asm__(".insn r 0x33, 2, 0x0A, %0, %1, x9" : "=r"(x) : "r"(x + (scale->zero - magic)));
    return (char)x;
}
/* Four neighbours. */
static inline __attribute__((always_inline)) void tw_pool_bytes(const struct tw_pool_scale *scale, const int is_signed,
                                                                int32_t a, int32_t b, int32_t c, int32_t d, char *to) {
    to[0] = tw_pool_byte(scale, is_signed, 0, a);
    to[1] = tw_pool_byte(scale, is_signed, 1, b);
    to[2] = tw_pool_byte(scale, is_signed, 2, c);
    to[3] = tw_pool_byte(scale, is_signed, 3, d);
}

#endif
