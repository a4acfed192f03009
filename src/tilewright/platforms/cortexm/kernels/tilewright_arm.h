/* Instructions of Arm cores by name. A core without them, and any other machine, computes the same in plain C: kernels that
 * are written with these names run everywhere, and their results are the same. */
#ifndef TILEWRIGHT_ARM_H
#define TILEWRIGHT_ARM_H

#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && defined(__ARM_FEATURE_DSP) && defined(__thumb2__)
#define TW_ARM_DSP 1
#include <arm_acle.h>
#else
#define TW_ARM_DSP 0
#endif

#if defined(__GNUC__)
#define TW_ARM_INLINE static inline __attribute__((always_inline, unused))
#define TW_ARM_APART static __attribute__((noinline, unused))
/* Functions that are assembler text from the first to the last instruction, for loops in which every register counts. */
#define TW_ARM_TEXT static __attribute__((naked, noinline, unused))
#define TW_ARM_UNUSED __attribute__((unused))
#else
#define TW_ARM_INLINE static inline
#define TW_ARM_APART static inline
#endif

/* Four bytes at any address, the first one in the lowest bits. */
TW_ARM_INLINE uint32_t tw_load_word(const void *from) {
    uint32_t word;
    memcpy(&word, from, sizeof word);
    return word;
}
TW_ARM_INLINE void tw_store_word(void *to, uint32_t word) { memcpy(to, &word, sizeof word); }

/* Bytes of any number at any address. Cores that trap on unaligned words copy byte by byte unless both are aligned. */
TW_ARM_APART void tw_copy_bytes(void *to, const void *from, int bytes) {
    char *y = (char *)to;
    const char *x = (const char *)from;
#if !TW_ARM_DSP
    const int words = (((uintptr_t)x | (uintptr_t)y) & 3u) == 0;
#else
    const int words = 1;
#endif
    int i = 0;
    for (; words && i + 16 <= bytes; i += 16) {
        const uint32_t a = tw_load_word(x + i), b = tw_load_word(x + i + 4);
        const uint32_t c = tw_load_word(x + i + 8), d = tw_load_word(x + i + 12);
        tw_store_word(y + i, a);
        tw_store_word(y + i + 4, b);
        tw_store_word(y + i + 8, c);
        tw_store_word(y + i + 12, d);
    }
    for (; words && i + 4 <= bytes; i += 4)
        tw_store_word(y + i, tw_load_word(x + i));
    for (; i < bytes; i++)
        y[i] = x[i];
}

/* Half of a word as a signed number. */
TW_ARM_INLINE int32_t tw_low(uint32_t word) { return (int16_t)(uint16_t)word; }
TW_ARM_INLINE int32_t tw_high(uint32_t word) { return (int16_t)(uint16_t)(word >> 16); }
TW_ARM_INLINE uint32_t tw_halves(int32_t low, int32_t high) {
    return ((uint32_t)low & 0xFFFFu) | ((uint32_t)high << 16);
}

/* Bytes 0 and 2 of a word as two halves; of tw_odd_*, bytes 1 and 3. */
#if TW_ARM_DSP
#define TW_ARM_WIDENS(NAME, TEXT)                                                                                      \
    TW_ARM_INLINE uint32_t NAME(uint32_t word) {                                                                       \
        uint32_t halves;                                                                                               \
        __asm__(TEXT : "=r"(halves) : "r"(word));                                                                      \
        return halves;                                                                                                 \
    }
TW_ARM_WIDENS(tw_even_s8, "sxtb16 %0, %1")
TW_ARM_WIDENS(tw_even_u8, "uxtb16 %0, %1")
TW_ARM_WIDENS(tw_odd_s8, "sxtb16 %0, %1, ror #8")
TW_ARM_WIDENS(tw_odd_u8, "uxtb16 %0, %1, ror #8")
#else
TW_ARM_INLINE uint32_t tw_even_s8(uint32_t word) {
    return tw_halves((int8_t)(uint8_t)word, (int8_t)(uint8_t)(word >> 16));
}
TW_ARM_INLINE uint32_t tw_even_u8(uint32_t word) { return word & 0x00FF00FFu; }
TW_ARM_INLINE uint32_t tw_odd_s8(uint32_t word) { return tw_even_s8(word >> 8); }
TW_ARM_INLINE uint32_t tw_odd_u8(uint32_t word) { return tw_even_u8(word >> 8); }
#endif

/* The lower halves of two words, and the upper ones. */
TW_ARM_INLINE uint32_t tw_low_halves(uint32_t low, uint32_t high) {
#if TW_ARM_DSP
    uint32_t both;
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(both) : "r"(low), "r"(high));
    return both;
#else
    return (low & 0xFFFFu) | high << 16;
#endif
}
TW_ARM_INLINE uint32_t tw_high_halves(uint32_t low, uint32_t high) {
#if TW_ARM_DSP
    uint32_t both;
    __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(both) : "r"(high), "r"(low));
    return both;
#else
    return low >> 16 | (high & 0xFFFF0000u);
#endif
}

/* sum + the products of both halves, or of one: sums wrap. */
#if TW_ARM_DSP
TW_ARM_INLINE int32_t tw_dual(uint32_t a, uint32_t b, int32_t sum) { return __smlad((int16x2_t)a, (int16x2_t)b, sum); }
TW_ARM_INLINE int32_t tw_low_product(uint32_t a, uint32_t b, int32_t sum) {
    return __smlabb((int32_t)a, (int32_t)b, sum);
}
TW_ARM_INLINE int32_t tw_high_product(uint32_t a, uint32_t b, int32_t sum) {
    return __smlatt((int32_t)a, (int32_t)b, sum);
}
#else
TW_ARM_INLINE int32_t tw_low_product(uint32_t a, uint32_t b, int32_t sum) {
    return (int32_t)((uint32_t)sum + (uint32_t)(tw_low(a) * tw_low(b)));
}
TW_ARM_INLINE int32_t tw_high_product(uint32_t a, uint32_t b, int32_t sum) {
    return (int32_t)((uint32_t)sum + (uint32_t)(tw_high(a) * tw_high(b)));
}
TW_ARM_INLINE int32_t tw_dual(uint32_t a, uint32_t b, int32_t sum) {
    return tw_low_product(a, b, tw_high_product(a, b, sum));
}
#endif

/* The nearest integer, half to even, of a number that is none becomes 0; sums that do not overflow. */
#if TW_ARM_DSP && (__ARM_FP & 4)
#define TW_ARM_ROUNDS 1
TW_ARM_INLINE int32_t tw_nearest(float x) {
    float rounded;
    int32_t bits;
    __asm__("vcvtr.s32.f32 %0, %1" : "=t"(rounded) : "t"(x));
    memcpy(&bits, &rounded, sizeof bits);
    return bits;
}
TW_ARM_INLINE int32_t tw_sum_limited(int32_t a, int32_t b) {
    int32_t sum;
    __asm__("qadd %0, %1, %2" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}
#else
#define TW_ARM_ROUNDS 0
#endif

/* sum + the upper 32 bits of a * b. */
TW_ARM_INLINE int32_t tw_upper_product(int32_t a, int32_t b, int32_t sum) {
#if TW_ARM_DSP
    int32_t result;
    __asm__("smmla %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
#else
    return sum + (int32_t)((int64_t)a * b >> 32);
#endif
}

#endif
