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

/* What is done with the products of a row: a division by d that rounds towards zero, a shift to the right, and limits. */
struct irmsnorm_s16_by {
    int shift, top;
    /* Bytes: nothing beyond the limits is divided, so that numbers fit a float's digits. With `less`, d - 1, added to what
     * is below zero the shift may come first, and then whatever is rounded goes down. `half` of the inverse is added, too:
     * no quotient is nearer to an integer than that, and those of floats are nearer to them. */
    int32_t less, limit;
    float inverse, half;
    /* Others: value * m / 2^(31 + k) with 2^k >= d and m = 2^(31 + k) / d, rounded up to the next integer, is right or,
     * below zero, one too low. */
    uint32_t m;
    int k;
};

static inline struct irmsnorm_s16_by irmsnorm_s16_by(int32_t d, int shift, int top) {
    struct irmsnorm_s16_by by = {.shift = shift, .top = top};
    if (sizeof(U) == 1) {
        by.less = d - 1;
        by.limit = (top + 1) * d - 1;
        by.inverse = 1.0f / (float)d;
        by.half = 0.5f * by.inverse;
        return by;
    }
    by.k = d > 1 ? tw_highest_bit((uint32_t)d - 1) + 1 : 0;
    /* 2^(31 + k) / d in two steps */
    uint32_t high = (UINT32_C(1) << 31) / (uint32_t)d;
    TW_KEEP(high);
    const uint32_t rest = (UINT32_C(1) << 31) - high * (uint32_t)d;
    by.m = (high << by.k) + (rest << by.k) / (uint32_t)d + 1;
    return by;
}

TW_INLINE U irmsnorm_s16_value(int32_t x, int32_t weight, const struct irmsnorm_s16_by *by) {
    const int32_t most = (int32_t)(UINT32_MAX >> (33 - 8 * sizeof(U)));
    int32_t quotient;
    if (sizeof(U) == 1) {
        const int32_t product = x * weight, shifted = (product + (product >> 31 & by->less)) >> by->shift,
                      held = tw_max(tw_min(shifted, by->limit), -by->limit - 1);
        __asm__("fcvt.w.s %0, %1, rdn" : "=r"(quotient) : "f"(__builtin_fmaf((float)held, by->inverse, by->half)));
    } else {
        const int32_t twice = 2 * x * weight;
        __asm__("mulhsu %0, %1, %2" : "=r"(quotient) : "r"(twice), "r"(by->m));
        quotient >>= by->k;
        __asm__(".insn r 0x5B, 2, 0x20, %0, %1, %2\n" /* p.addNr */
                ".insn r 0x33, 5, 0x0A, %0, %0, %3"   /* p.clipr */
                : "+r"(quotient)
                : "r"((uint32_t)twice >> 31), "r"(by->shift), "r"(by->top));
    }
    if (quotient < -most - 1 || quotient > most) /* else it is converted once more */
        __builtin_unreachable();
    return (U)quotient;
}

/* The same for two of four bytes that follow each other, up to the conversion; p.lh, p.addNr, p.clipr. */
#define IRMSNORM_S16_LOAD(to, other) TW_NEXT_WORD(to, "%[w]") ".insn i 0x0B, 1, " other ", 2(%[x])\n"
#define IRMSNORM_S16_PRODUCT(to, other) "mul " to ", " to ", " other "\n"
#define IRMSNORM_S16_SIGN(to, other) "srai " other ", " to ", 31\n"
#define IRMSNORM_S16_LESS(other) "and " other ", " other ", %[less]\n"
#define IRMSNORM_S16_SHIFT(to, other) ".insn r 0x5B, 2, 0x20, " to ", " other ", %[shift]\n"
#define IRMSNORM_S16_HELD(to) ".insn r 0x33, 5, 0x0A, " to ", " to ", %[limit]\n"
#define IRMSNORM_S16_REAL(real, to) "fcvt.s.w " real ", " to "\n"
#define IRMSNORM_S16_QUOTIENT(real) "fmadd.s " real ", " real ", %[inverse], %[half]\n"
#define IRMSNORM_S16_DOWN(to, real) "fcvt.w.s " to ", " real ", rdn\n"

/* Some fours of results of 8 bits: pv.packlo.b, pv.packhi.b, p.sw. Operations of the floating-point unit are apart where
 * they can be, as another core may use it. */
TW_INLINE void irmsnorm_s16_bytes(const int16_t *x, const int32_t *w, void *y, int fours,
                                  const struct irmsnorm_s16_by *by) {
    __asm__ volatile(
        ".option push\n.option norvc\n" TW_REPEAT("%[fours]", "86") IRMSNORM_S16_LOAD("t0", "t4") IRMSNORM_S16_LOAD(
            "t1", "t5") IRMSNORM_S16_PRODUCT("t0", "t4") IRMSNORM_S16_PRODUCT("t1", "t5") IRMSNORM_S16_SIGN("t0", "t4")
            IRMSNORM_S16_SIGN("t1", "t5") IRMSNORM_S16_LESS("t4") IRMSNORM_S16_LESS("t5") IRMSNORM_S16_SHIFT("t0", "t4")
                IRMSNORM_S16_SHIFT("t1", "t5") IRMSNORM_S16_HELD("t0") IRMSNORM_S16_HELD("t1") IRMSNORM_S16_LOAD(
                    "t2", "t4") IRMSNORM_S16_REAL("ft0", "t0") IRMSNORM_S16_LOAD("t3", "t5")
                    IRMSNORM_S16_REAL("ft1", "t1") IRMSNORM_S16_PRODUCT("t2", "t4") IRMSNORM_S16_QUOTIENT("ft0")
                        IRMSNORM_S16_PRODUCT("t3", "t5") IRMSNORM_S16_QUOTIENT("ft1") IRMSNORM_S16_SIGN(
                            "t2", "t4") IRMSNORM_S16_SIGN("t3", "t5") IRMSNORM_S16_LESS("t4") IRMSNORM_S16_LESS("t5")
                            IRMSNORM_S16_SHIFT("t2", "t4") IRMSNORM_S16_SHIFT("t3", "t5") IRMSNORM_S16_HELD("t2")
                                IRMSNORM_S16_HELD("t3") IRMSNORM_S16_REAL("ft2", "t2") IRMSNORM_S16_DOWN("t0", "ft0")
                                    IRMSNORM_S16_REAL("ft3", "t3") IRMSNORM_S16_DOWN("t1", "ft1")
                                        IRMSNORM_S16_QUOTIENT("ft2") IRMSNORM_S16_QUOTIENT(
                                            "ft3") ".insn r 0x57, 1, 0x70, t4, t1, t0\n" IRMSNORM_S16_DOWN("t2", "ft2")
                                            IRMSNORM_S16_DOWN("t3", "ft3") ".insn r 0x57, 1, 0x6C, t4, t3, t2\n"
                                                                           ".insn s 0x2B, 2, t4, 4(%[y])\n.option pop\n"
        : [x] "+r"(x), [w] "+r"(w), [y] "+r"(y)
        : [fours] "r"(fours), [less] "r"(by->less), [shift] "r"(by->shift), [limit] "r"(by->limit),
          [inverse] "f"(by->inverse), [half] "f"(by->half)
        : "t0", "t1", "t2", "t3", "t4", "t5", "ft0", "ft1", "ft2", "ft3", "memory");
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
        const struct irmsnorm_s16_by by = irmsnorm_s16_by(deviation, shift, top);
        const int16_t *a = row + from;
        const int32_t *w = weight + from;
        int i = from, at = outer * AXIS + from;
        if (sizeof(U) == 1 && STORE_STEPS == 0 && end - from >= 4) {
            const int fours = (end - from) >> 2;
            irmsnorm_s16_bytes(a, w, y + at, fours, &by);
            i += 4 * fours, at += 4 * fours, a += 4 * fours, w += 4 * fours;
        }
        for (; i + 4 <= end; i += 4, at += 4, a += 4, w += 4)
            STORE_4(&e, y, irmsnorm_s16_value(a[0], w[0], &by), irmsnorm_s16_value(a[1], w[1], &by),
                    irmsnorm_s16_value(a[2], w[2], &by), irmsnorm_s16_value(a[3], w[3], &by), at, i);
        for (; i < end; i++)
            STORE_1(&e, y, irmsnorm_s16_value(*a++, *w++, &by), at++, i);
    }
}
