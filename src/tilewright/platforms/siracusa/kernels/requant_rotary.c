/* ---
op: RequantRotary
types: {X: int32, mul: int32, add: int32, cosines: int16, sines: int16, position: int32, Y: int8}
when: {S: "== 1"}
whole: [H, S, D]
# A pair at a time; cores have as many of them, wherever rows begin.
cycles:
  pairs: (PAIRS := steps(H * twos(D), PARTS))
  rows: steps(PAIRS + PAIRS, D)
  call: some(H)
--- */
#include "tilewright_kernel.h"

/* p.lw and p.lh of elements that follow each other. */
#define REQUANT_ROTARY_WORD(at)                                                                                        \
    ({                                                                                                                 \
        int32_t word;                                                                                                  \
        __asm__ volatile(TW_NEXT_WORD("%[w]", "%[a]") : [w] "=r"(word), [a] "+r"(at) : : "memory");                    \
        word;                                                                                                          \
    })
#define REQUANT_ROTARY_HALF(at)                                                                                        \
    ({                                                                                                                 \
        int32_t half;                                                                                                  \
        __asm__ volatile(".insn i 0x0B, 1, %0, %1, 2" : "=r"(half), "+r"(at) : : "memory");                            \
        half;                                                                                                          \
    })

TW_INLINE int32_t requant_rotary_scaled(int32_t sum, int32_t factor, int32_t added, int shift) {
    const int32_t product = (int32_t)((uint32_t)sum * (uint32_t)factor);
    return tw_clamp(tw_sum_rounded(product, added, 1 << shift >> 1, shift), -32768, 32767);
}

TW_INLINE int8_t requant_rotary_byte(int32_t sum, int shift) {
    return (int8_t)tw_clamp(tw_sum_rounded(sum, 0, 1 << shift >> 1, shift), -128, 127);
}

static void requant_rotary(const int32_t *X, const int32_t *mul, const int32_t *add, const int16_t *cosines,
                           const int16_t *sines, const int32_t *position, int8_t *Y, int H, int D, int cosines_n0,
                           int shift, int div, int PART, int PARTS) {
    const int half = D / 2, all = H * half, share = (all + PARTS - 1) / PARTS, scale = tw_highest_bit((uint32_t)div),
              place = tw_max(0, tw_min(*position, cosines_n0 - 1)) * half;
    int at = tw_min(PART * share, all), left = tw_min(share, all - at), head = at / half, pair = at % half;
    for (; left > 0; head++, pair = 0) {
        const int column = head * D + pair, count = tw_min(half - pair, left);
        const int32_t *x = X + column, *other_x = x + half, *m = mul + column, *other_m = m + half, *b = add + column,
                      *other_b = b + half;
        const int16_t *c = cosines + place + pair, *d = sines + place + pair;
        int8_t *y = Y + column, *other_y = y + half;
        left -= count;
        TW_UNROLL_BY(1)
        for (const int8_t *const end = y + count; y != end;) {
            const int32_t sum = REQUANT_ROTARY_WORD(x), factor = REQUANT_ROTARY_WORD(m), added = REQUANT_ROTARY_WORD(b),
                          other_sum = REQUANT_ROTARY_WORD(other_x), other_factor = REQUANT_ROTARY_WORD(other_m),
                          other_added = REQUANT_ROTARY_WORD(other_b), cosine = REQUANT_ROTARY_HALF(c),
                          sine = REQUANT_ROTARY_HALF(d);
            const int32_t own = requant_rotary_scaled(sum, factor, added, scale),
                          other = requant_rotary_scaled(other_sum, other_factor, other_added, scale);
            int32_t first = own * cosine, second = other * cosine;
            /* p.msu, p.mac */
            __asm__(".insn r 0x33, 1, 0x21, %0, %1, %2" : "+r"(first) : "r"(other), "r"(sine));
            __asm__(".insn r 0x33, 0, 0x21, %0, %1, %2" : "+r"(second) : "r"(own), "r"(sine));
            *y++ = requant_rotary_byte(first, shift);
            *other_y++ = requant_rotary_byte(second, shift);
        }
    }
}
