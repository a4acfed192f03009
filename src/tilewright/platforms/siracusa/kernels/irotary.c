/* ---
op: iRotary
types: {X: int16, cosines: int16, sines: int16, position: int32, Y: int8}
when: {D: "D % 4 == 0"}
whole: [H, S, D]
# Two pairs at a time; cores have as many of them, wherever rows begin.
cycles:
  pairs: steps(H * S * words(D), PARTS)
  rows: steps(steps(H * S * words(D), PARTS), words(D))
  call: some(H)
--- */
#include "tilewright_kernel.h"

/* A result of two sums of products of 16 bits: p.muls or p.mulhhs, and p.macs or p.machhs. */
#define IROTARY_FIRST(code, left, right, cosine, sine)                                                                 \
    ({                                                                                                                 \
        int32_t first, other;                                                                                          \
        __asm__(".insn r 0x5B, 0, " code ", %0, %1, %2" : "=r"(first) : "r"(left), "r"(cosine));                       \
        __asm__(".insn r 0x5B, 0, " code ", %0, %1, %2" : "=r"(other) : "r"(right), "r"(sine));                        \
        (int32_t)((uint32_t)first - (uint32_t)other);                                                                  \
    })
#define IROTARY_SECOND(code, left, right, cosine, sine)                                                                \
    ({                                                                                                                 \
        int32_t second;                                                                                                \
        __asm__(".insn r 0x5B, 0, " code ", %0, %2, %3\n.insn r 0x5B, 1, " code ", %0, %1, %4"                         \
                : "=&r"(second)                                                                                        \
                : "r"(left), "r"(right), "r"(cosine), "r"(sine));                                                      \
        second;                                                                                                        \
    })
#define IROTARY_LOWER "0x40"
#define IROTARY_UPPER "0x60"

static void irotary(const int16_t *X, const int16_t *cosines, const int16_t *sines, const int32_t *position, int8_t *Y,
                    int H, int S, int D, int cosines_n0, int shift, int PART, int PARTS) {
    const int half = D / 2, twos = D / 4, all = H * S * twos, share = (all + PARTS - 1) / PARTS;
    int at = tw_min(PART * share, all), left = tw_min(share, all - at), row = at / twos, two = at % twos;
    for (; left > 0; row++, two = 0) {
        const int h = row / S, s = row % S, place = tw_max(0, tw_min(*position + s, cosines_n0 - 1)) * half;
        const int16_t *const x = X + (s * H + h) * D;
        int8_t *const y = Y + row * D;
        TW_UNROLL_BY(1)
        for (; two < twos && left > 0; two++, left--) {
            const int i = 2 * two;
            const int32_t a = *(const int32_t *)(const void *)(x + i),
                          b = *(const int32_t *)(const void *)(x + half + i),
                          c = *(const int32_t *)(const void *)(cosines + place + i),
                          d = *(const int32_t *)(const void *)(sines + place + i);
            const int32_t first = IROTARY_FIRST(IROTARY_LOWER, a, b, c, d),
                          next = IROTARY_FIRST(IROTARY_UPPER, a, b, c, d),
                          second = IROTARY_SECOND(IROTARY_LOWER, a, b, c, d),
                          last = IROTARY_SECOND(IROTARY_UPPER, a, b, c, d);
            tw_store_1(y + i, tw_clamp(tw_sum_rounded(first, 0, 0, shift), -128, 127));
            tw_store_1(y + i + 1, tw_clamp(tw_sum_rounded(next, 0, 0, shift), -128, 127));
            tw_store_1(y + half + i, tw_clamp(tw_sum_rounded(second, 0, 0, shift), -128, 127));
            tw_store_1(y + half + i + 1, tw_clamp(tw_sum_rounded(last, 0, 0, shift), -128, 127));
        }
    }
}
