/* ---
op: iRMSNorm
types: {x: int16, weight: int32, y: U}
U: [int8, int16, int32]
when: {largest_weight: "<= 32767", AXIS: "< 65536"}      # so that products fit 31 bits
epilogue: row
# A root and three quotients for each row; squares and results of four elements at a time, then one. Rows take turns among
# the cores. Of those that are left each core has some fours, and they meet where all squares are added.
cycles:
  fours: (ROUNDS := OUTER // PARTS) * fours(AXIS) + (LEFT := OUTER % PARTS) * steps(fours(AXIS), PARTS)
  single: (ROUNDS + LEFT) * left_of_fours(AXIS)
  rows: ROUNDS + LEFT
  meetings: LEFT
  behind: (ROUNDS * AXIS + LEFT * steps(AXIS, PARTS)) * FUSED
  call: some(OUTER)
--- */
#include "tilewright_kernel.h"
#include "tilewright_meet.h"

#ifndef TW_GENERATED
typedef int8_t U;
#endif

/* The sum of squares in 64 bits; two of them fit 32 bits without a sign, whose halves are added up. What is loaded is
 * needed two instructions later. */
static inline uint64_t irmsnorm_s16_squares(const int16_t *x, int count) {
    uint32_t low = 0, high = 0;
    const int fours = count >> 2;
    if (fours) /* pv.dotsp.h, pv.sdotup.h */
        __asm__ volatile(
            ".option push\n.option norvc\n" TW_REPEAT("%[fours]", "16") TW_NEXT_WORD("t0", "%[x]")
                TW_NEXT_WORD("t1", "%[x]") ".insn r 0x57, 0, 0x4C, t0, t0, t0\n.insn r 0x57, 0, 0x4C, t1, t1, t1\n"
                                           ".insn r 0x57, 0, 0x50, %[low], t0, %[first]\n"
                                           ".insn r 0x57, 0, 0x50, %[high], t0, %[second]\n"
                                           ".insn r 0x57, 0, 0x50, %[low], t1, %[first]\n"
                                           ".insn r 0x57, 0, 0x50, %[high], t1, %[second]\n.option pop\n"
            : [x] "+r"(x), [low] "+r"(low), [high] "+r"(high)
            : [fours] "r"(fours), [first] "r"(1), [second] "r"(1 << 16)
            : "t0", "t1", "memory");
    uint64_t sum = ((uint64_t)high << 16) + low;
    TW_UNROLL_BY(1)
    for (int left = count & 3; left > 0; left--, x++)
        sum += (uint32_t)(*x * *x);
    return sum;
}

/* The mean of as many squares as `count` says, which is below 2^16. A division of 64 bits is a function that comes from
 * L2; here are two of 32. */
static inline uint32_t irmsnorm_s16_mean(uint64_t squares, uint32_t count) {
    const uint32_t high = (uint32_t)(squares >> 16), quotient = high / count;
    return (quotient << 16) + ((high - quotient * count) << 16 | ((uint32_t)squares & 0xffff)) / count;
}

/* The root of a number up to 2^30 + 1, rounded down; a float's may be one off. */
static inline int32_t irmsnorm_s16_root(uint32_t n) {
    float found = (float)n;
    __asm__("fsqrt.s %0, %0" : "+f"(found));
    uint32_t root = (uint32_t)found;
    root -= root * root > n;
    return (int32_t)(root + ((root + 1) * (root + 1) <= n));
}

/* Division by d of values up to 2^30: value * m / 2^(31 + k) with 2^k >= d and m = 2^(31 + k) / d, rounded up to the next
 * integer, is right or, below zero, one too low. Then a shift to the right, and limits. */
TW_INLINE U irmsnorm_s16_value(int32_t x, int32_t weight, uint32_t m, int k, int shift, int32_t top) {
    const int32_t twice = 2 * x * weight;
    int32_t quotient;
    __asm__("mulhsu %0, %1, %2" : "=r"(quotient) : "r"(twice), "r"(m));
    quotient >>= k;
    __asm__(".insn r 0x5B, 2, 0x20, %0, %1, %2\n" /* p.addNr */
            ".insn r 0x33, 5, 0x0A, %0, %0, %3"   /* p.clipr */
            : "+r"(quotient)
            : "r"((uint32_t)twice >> 31), "r"(shift), "r"(top));
    const int32_t most = (int32_t)(UINT32_MAX >> (33 - 8 * sizeof(U)));
    if (quotient < -most - 1 || quotient > most) /* else it is converted once more */
        __builtin_unreachable();
    return (U)quotient;
}

/* The same for two of four bytes that follow each other, in registers that the instructions name. Nothing is doubled: k is
 * one less, and was not 0. */
#define IRMSNORM_S16_TWO(first, second)                                                                                \
    TW_NEXT_WORD(first, "%[w]")                                                                                        \
    ".insn i 0x0B, 1, t4, 2(%[x])\n" TW_NEXT_WORD(                                                                     \
        second, "%[w]") ".insn i 0x0B, 1, t5, 2(%[x])\n" /* p.lh */                                                    \
                        "mul " first ", " first ", t4\nmul " second ", " second ", t5\n"                               \
                        "mulhsu t4, " first ", %[m]\nmulhsu t5, " second ", %[m]\n"                                    \
                        "srli t6, " first ", 31\nsra " first ", t4, %[k]\n"                                            \
                        ".insn r 0x5B, 2, 0x20, " first ", t6, %[shift]\n"                                             \
                        "srli t6, " second ", 31\nsra " second ", t5, %[k]\n"                                          \
                        ".insn r 0x5B, 2, 0x20, " second ", t6, %[shift]\n"                                            \
                        ".insn r 0x33, 5, 0x0A, " first ", " first ", %[top]\n"                                        \
                        ".insn r 0x33, 5, 0x0A, " second ", " second ", %[top]\n"

/* Some fours of results of 8 bits: pv.packlo.b, pv.packhi.b, p.sw. */
TW_INLINE void irmsnorm_s16_bytes(const int16_t *x, const int32_t *w, void *y, int fours, uint32_t m, int k, int shift,
                                  int32_t top) {
    __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[fours]", "70") IRMSNORM_S16_TWO("t0", "t1")
                         IRMSNORM_S16_TWO("t2", "t3") ".insn r 0x57, 1, 0x70, t4, t1, t0\n"
                                                      ".insn r 0x57, 1, 0x6C, t4, t3, t2\n"
                                                      ".insn s 0x2B, 2, t4, 4(%[y])\n.option pop\n"
                     : [x] "+r"(x), [w] "+r"(w), [y] "+r"(y)
                     : [fours] "r"(fours), [m] "r"(m), [k] "r"(k), [shift] "r"(shift), [top] "r"(top)
                     : "t0", "t1", "t2", "t3", "t4", "t5", "t6", "memory");
}

/* Sums of squares of the cores for a row, and for the next: who is there has read those of the row before. */
static __attribute__((section(".near"))) uint64_t irmsnorm_s16_sums[2][TW_CORES_OF_CLUSTER];

/* The sum of what all parts have found. */
TW_APART uint64_t irmsnorm_s16_all(uint64_t mine, int row, int part, int parts) {
    volatile uint64_t *const sums = irmsnorm_s16_sums[row & 1];
    if (parts == 1)
        return mine;
    sums[part] = mine;
    tw_meet_parts(parts);
    uint64_t sum = 0;
    TW_UNROLL_BY(1)
    for (int i = 0; i < parts; i++)
        sum += sums[i];
    return sum;
}

static void irmsnorm_s16(const int16_t *x, const int32_t *weight, U *y, int OUTER, int AXIS, int D, int n_levels,
                         int PART, int PARTS, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const int shift = tw_highest_bit((uint32_t)D), top = n_levels / 2 - 1;
    for (int first = 0, parts = 1; first < OUTER; first += parts == 1 ? PARTS : 1) {
        parts = first + PARTS <= OUTER ? 1 : PARTS;
        const int outer = parts == 1 ? first + PART : first, mine = parts == 1 ? 0 : PART,
                  part = (AXIS + 4 * parts - 1) / (4 * parts) * 4, from = tw_min(mine * part, AXIS),
                  end = tw_min(from + part, AXIS);
        const int16_t *const row = x + outer * AXIS;
        const uint64_t squares = irmsnorm_s16_all(irmsnorm_s16_squares(row + from, end - from), outer, mine, parts);
        const int32_t deviation = irmsnorm_s16_root(irmsnorm_s16_mean(squares, (uint32_t)AXIS) + 1);
        const int k = deviation > 1 ? tw_highest_bit((uint32_t)deviation - 1) + 1 : 0;
        /* 2^(31 + k) / d in two steps */
        uint32_t high = (UINT32_C(1) << 31) / (uint32_t)deviation;
        TW_KEEP(high);
        const uint32_t rest = (UINT32_C(1) << 31) - high * (uint32_t)deviation;
        const uint32_t m = (high << k) + (rest << k) / (uint32_t)deviation + 1;
        const int16_t *a = row + from;
        const int32_t *w = weight + from;
        int i = from, at = outer * AXIS + from;
        if (sizeof(U) == 1 && STORE_STEPS == 0 && k > 0 && end - from >= 4) {
            const int fours = (end - from) >> 2;
            irmsnorm_s16_bytes(a, w, y + at, fours, m, k - 1, shift, top);
            i += 4 * fours, at += 4 * fours, a += 4 * fours, w += 4 * fours;
        }
        for (; i + 4 <= end; i += 4, at += 4, a += 4, w += 4)
            STORE_4(&e, y, irmsnorm_s16_value(a[0], w[0], m, k, shift, top),
                    irmsnorm_s16_value(a[1], w[1], m, k, shift, top), irmsnorm_s16_value(a[2], w[2], m, k, shift, top),
                    irmsnorm_s16_value(a[3], w[3], m, k, shift, top), at, i);
        for (; i < end; i++)
            STORE_1(&e, y, irmsnorm_s16_value(*a++, *w++, m, k, shift, top), at++, i);
    }
}
