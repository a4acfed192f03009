/* ---
op: RequantRotary
types: {X: int32, mul: int32, add: int32, cosines: int16, sines: int16, position: int32, Y: int8}
when: {S: "S >= 2"}
whole: [H, D]
strided: [X]
# All rows of a pair of columns, whose factors stay in registers; cores have as many pairs.
cycles:
  results: (PAIRS := steps(H * twos(D), PARTS)) * S
  columns: PAIRS
  call: some(H)
--- */
#include "tilewright_kernel.h"

/* A pair of columns: rows of sums, of rotations and of results that follow each other. */
TW_INLINE void requant_rotary_rows_pair(const int32_t *x, int x_row, const int32_t *mul, const int32_t *add, int half,
                                        const int16_t *c, const int16_t *s, int8_t *y, int y_row, int rows, int scale,
                                        int shift) {
    const int32_t *other_x = x + half;
    int8_t *other_y = y + half;
    __asm__ volatile(
        ".option push\n.option norvc\n" TW_REPEAT("%[rows]", "40")
        /* p.lw, p.lh */
        ".insn r 0x0B, 7, 0x10, t0, %[x], %[x_next]\n.insn r 0x0B, 7, 0x10, t1, %[other_x], %[x_next]\n"
        ".insn r 0x0B, 7, 0x08, t2, %[c], %[c_next]\n.insn r 0x0B, 7, 0x08, t3, %[s], %[c_next]\n"
        "mul t0, t0, %[mul]\nmul t1, t1, %[other_mul]\n"
        /* p.addRNr, p.clip */
        ".insn r 0x5B, 6, 0x20, t0, %[add], %[scale]\n.insn r 0x5B, 6, 0x20, t1, %[other_add], %[scale]\n"
        ".insn r 0x33, 1, 0x0A, t0, t0, x16\n.insn r 0x33, 1, 0x0A, t1, t1, x16\n"
        "mul t4, t0, t2\nmul t5, t1, t2\n"
        /* p.msu, p.mac */
        ".insn r 0x33, 1, 0x21, t4, t1, t3\n.insn r 0x33, 0, 0x21, t5, t0, t3\n"
        ".insn r 0x5B, 6, 0x20, t4, x0, %[shift]\n.insn r 0x5B, 6, 0x20, t5, x0, %[shift]\n"
        ".insn r 0x33, 1, 0x0A, t4, t4, x8\n.insn r 0x33, 1, 0x0A, t5, t5, x8\n"
        /* p.sb */
        ".insn r 0x2B, 4, 0, %[y_next], %[y], t4\n.insn r 0x2B, 4, 0, %[y_next], %[other_y], t5\n.option pop\n"
        : [x] "+r"(x), [other_x] "+r"(other_x), [c] "+r"(c), [s] "+r"(s), [y] "+r"(y), [other_y] "+r"(other_y)
        : [rows] "r"(rows), [x_next] "r"(4 * x_row), [c_next] "r"(2 * half), [y_next] "r"(y_row), [mul] "r"(mul[0]),
          [other_mul] "r"(mul[half]), [add] "r"(add[0]), [other_add] "r"(add[half]), [scale] "r"(scale),
          [shift] "r"(shift)
        : "t0", "t1", "t2", "t3", "t4", "t5", "memory");
}

static void requant_rotary_rows(const int32_t *X, const int32_t *mul, const int32_t *add, const int16_t *cosines,
                                const int16_t *sines, const int32_t *position, int8_t *Y, int H, int S, int D,
                                int S_from, int X_s0, int cosines_n0, int shift, int div, int PART, int PARTS) {
    const int half = D / 2, all = H * half, share = (all + PARTS - 1) / PARTS, end = tw_min(PART * share + share, all),
              scale = tw_highest_bit((uint32_t)div), first = *position + S_from;
    int h = PART * share / half, pair = PART * share % half;
    TW_UNROLL_BY(1)
    for (int at = PART * share; at < end; at++, pair++) {
        if (pair == half)
            h++, pair = 0;
        const int column = h * D + pair;
        int8_t *const y = Y + h * S * D + pair;
        TW_UNROLL_BY(1)
        for (int row = 0, rows; row < S; row += rows) {
            /* Rows beyond the table have its first or last rotation. */
            const int place = tw_max(0, tw_min(first + row, cosines_n0 - 1));
            rows = place == first + row ? tw_min(S - row, cosines_n0 - place) : 1;
            requant_rotary_rows_pair(X + row * X_s0 + column, X_s0, mul + column, add + column, half,
                                     cosines + place * half + pair, sines + place * half + pair, y + row * D, D, rows,
                                     scale, shift);
        }
    }
}
