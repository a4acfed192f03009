/* Sums become bytes: what tw_scale and tw_clamp do, for columns of four of them, 31 instructions a row. */
#ifndef TILEWRIGHT_SCALE_H
#define TILEWRIGHT_SCALE_H

#include <stdint.h>

#define TW_SCALE_ADD(i) "add t" i ", t" i ", %[b" i "]\n"
#define TW_SCALE_REAL(i) "fcvt.s.w ft" i ", t" i "\n"
#define TW_SCALE_PRODUCT(i) "fmadd.s ft" i ", ft" i ", %[f" i "], %[magic]\n"
#define TW_SCALE_BITS(i) "fmv.x.w t" i ", ft" i "\n"
#define TW_SCALE_BACK(i) "add t" i ", t" i ", %[back]\n"
#define TW_SCALE_SIGNED(i) ".insn r 0x33, 1, 0x0A, t" i ", t" i ", x8\n"   /* p.clip */
#define TW_SCALE_UNSIGNED(i) ".insn r 0x33, 2, 0x0A, t" i ", t" i ", x9\n" /* p.clipu */
/* p.lw of four words of which the last moves to the next row; pv.packlo.b, pv.packhi.b, p.sw that moves, too. No two
 * operations of the floating-point unit follow each other, as another core may use it. */
#define TW_SCALE_ROWS(LIMIT)                                                                                           \
    __asm__ volatile(                                                                                                  \
        ".option push\n.option norvc\n" TW_REPEAT("%[rows]", "62") TW_NEXT_WORD("t0", "%[a]")                          \
            TW_NEXT_WORD("t1", "%[a]") TW_SCALE_ADD("0") TW_SCALE_REAL("0") TW_SCALE_ADD("1") TW_SCALE_REAL("1")       \
                TW_NEXT_WORD("t2", "%[a]")                                                                             \
                    TW_SCALE_PRODUCT("0") ".insn r 0x0B, 7, 0x10, t3, %[a], %[next]\n" TW_SCALE_PRODUCT("1")           \
                        TW_SCALE_ADD("2") TW_SCALE_REAL("2") TW_SCALE_ADD("3") TW_SCALE_REAL("3") TW_SCALE_BITS("0")   \
                            TW_SCALE_PRODUCT("2") TW_SCALE_BITS("1") TW_SCALE_PRODUCT("3") TW_SCALE_BACK("0")          \
                                TW_SCALE_BACK("1") TW_SCALE_BITS("2") TW_SCALE_BITS("3") LIMIT("0") LIMIT("1")         \
                                    TW_SCALE_BACK("2") TW_SCALE_BACK("3") LIMIT("2") LIMIT(                            \
                                        "3") ".insn r 0x57, 1, 0x70, t0, t1, t0\n.insn r 0x57, 1, 0x6C, t0, t3, t2\n"  \
                                             ".insn r 0x2B, 6, 0x00, %[y_row], %[y], t0\n.option pop\n"                \
        : [a] "+r"(a), [y] "+r"(y)                                                                                     \
        : [rows] "r"(rows), [next] "r"(a_row * 4 - 12), [y_row] "r"(y_row), [b0] "r"(b0), [b1] "r"(b1), [b2] "r"(b2),  \
          [b3] "r"(b3), [f0] "f"(f0), [f1] "f"(f1), [f2] "f"(f2), [f3] "f"(f3), [magic] "f"(12582912.0f),              \
          [back] "r"((uint32_t)zero - 0x4B400000u)                                                                     \
        : "t0", "t1", "t2", "t3", "ft0", "ft1", "ft2", "ft3", "memory")

/* Four neighbours in each of some rows, at least one: what is added to them and their factors are those of the columns. */
struct tw_scale {
    int32_t added[4];
    float factors[4];
    int32_t zero;
};
static inline __attribute__((always_inline)) void tw_scale_columns(const int is_signed, const int32_t *a, int a_row,
                                                                   void *y, int y_row, int rows,
                                                                   const struct tw_scale *scale) {
    const int32_t b0 = scale->added[0], b1 = scale->added[1], b2 = scale->added[2], b3 = scale->added[3];
    const float f0 = scale->factors[0], f1 = scale->factors[1], f2 = scale->factors[2], f3 = scale->factors[3];
    const int32_t zero = scale->zero;
    if (is_signed)
        TW_SCALE_ROWS(TW_SCALE_SIGNED);
    else
        TW_SCALE_ROWS(TW_SCALE_UNSIGNED);
}
/* What is fused behind a kernel, for four channels. */
#define TW_SCALE_OF(e, channel, b0, b1, b2, b3)                                                                        \
    {{(b0) + STORE_ADDED(e, (channel)), (b1) + STORE_ADDED(e, (channel) + 1), (b2) + STORE_ADDED(e, (channel) + 2),    \
      (b3) + STORE_ADDED(e, (channel) + 3)},                                                                           \
     {STORE_FACTOR(e, (channel)), STORE_FACTOR(e, (channel) + 1), STORE_FACTOR(e, (channel) + 2),                      \
      STORE_FACTOR(e, (channel) + 3)},                                                                                 \
     STORE_ZERO(e)}

#endif
