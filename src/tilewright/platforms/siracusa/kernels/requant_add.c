/* ---
op: RequantAdd
types: {X: int32, mul: int32, add: int32, A: int16, Y: int16}
# Then what is beyond the levels is beyond 16 bits, too, whatever is added.
when: {n_levels: ">= 131072", div: ">= 2"}
strided: [X, A, Y]
# Four rows at a time, for which factors are loaded once, then one by one; in loops that the core counts.
cycles:
  fours: whole_fours(S) * C
  single: left_of_fours(S) * C
  rows: whole_fours(S) + left_of_fours(S)
  call: some(S)
--- */
#include "tilewright_kernel.h"

/* p.lw of a sum, times its factor; p.addRNr. */
#define REQUANT_ADD_LOAD(sum, step) ".insn r 0x0B, 7, 0x10, " sum ", %[x], " step "\n"
#define REQUANT_ADD_SCALED(sum) "mul " sum ", " sum ", t4\n.insn r 0x5B, 6, 0x20, " sum ", t5, %[shift]\n"
/* p.lh of what is added; then p.clip, p.sh. */
#define REQUANT_ADD_OTHER(other, step) ".insn r 0x0B, 7, 0x08, " other ", %[a], " step "\n"
#define REQUANT_ADD_KEPT(sum, other, step)                                                                             \
    "add " sum ", " sum ", " other "\n.insn r 0x33, 1, 0x0A, " sum ", " sum ", x16\n"                                  \
    ".insn r 0x2B, 5, 0, " step ", %[y], " sum "\n"

/* Where rows begin, and how many bytes it is to the next one. */
struct requant_add_rows {
    const int32_t *x;
    const int16_t *a;
    int16_t *y;
    int x_row, a_row, y_row;
};

static inline void requant_add_four(struct requant_add_rows at, const int32_t *m, const int32_t *b, int columns,
                                    int shift) {
    __asm__ volatile(
        ".option push\n.option norvc\n" TW_REPEAT("%[columns]", "60") TW_NEXT_WORD("t4", "%[m]")
            TW_NEXT_WORD("t5", "%[b]") REQUANT_ADD_LOAD("t0", "%[x_row]") REQUANT_ADD_LOAD("t1", "%[x_row]")
                REQUANT_ADD_LOAD("t2", "%[x_row]") REQUANT_ADD_LOAD("t3", "%[x_back]") REQUANT_ADD_SCALED("t0")
                    REQUANT_ADD_SCALED("t1") REQUANT_ADD_SCALED("t2") REQUANT_ADD_SCALED("t3")
                        REQUANT_ADD_OTHER("t4", "%[a_row]") REQUANT_ADD_OTHER("t5", "%[a_row]")
                            REQUANT_ADD_KEPT("t0", "t4", "%[y_row]") REQUANT_ADD_OTHER("t4", "%[a_row]")
                                REQUANT_ADD_KEPT("t1", "t5", "%[y_row]") REQUANT_ADD_OTHER("t5", "%[a_back]")
                                    REQUANT_ADD_KEPT("t2", "t4", "%[y_row]")
                                        REQUANT_ADD_KEPT("t3", "t5", "%[y_back]") ".option pop\n"
        : [x] "+r"(at.x), [m] "+r"(m), [b] "+r"(b), [a] "+r"(at.a), [y] "+r"(at.y)
        : [columns] "r"(columns), [shift] "r"(shift), [x_row] "r"(at.x_row), [a_row] "r"(at.a_row),
          [y_row] "r"(at.y_row), [x_back] "r"(4 - 3 * at.x_row), [a_back] "r"(2 - 3 * at.a_row),
          [y_back] "r"(2 - 3 * at.y_row)
        : "t0", "t1", "t2", "t3", "t4", "t5", "memory");
}

static inline void requant_add_one(struct requant_add_rows at, const int32_t *m, const int32_t *b, int columns,
                                   int shift) {
    __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[columns]", "18") TW_NEXT_WORD("t0", "%[x]")
                         TW_NEXT_WORD("t4", "%[m]") TW_NEXT_WORD("t5", "%[b]") REQUANT_ADD_OTHER("t1", "%[next]")
                             REQUANT_ADD_SCALED("t0") REQUANT_ADD_KEPT("t0", "t1", "%[next]") ".option pop\n"
                     : [x] "+r"(at.x), [m] "+r"(m), [b] "+r"(b), [a] "+r"(at.a), [y] "+r"(at.y)
                     : [columns] "r"(columns), [shift] "r"(shift), [next] "r"(2)
                     : "t0", "t1", "t4", "t5", "memory");
}

static void requant_add(const int32_t *X, const int32_t *mul, const int32_t *add, const int16_t *A, int16_t *Y, int S,
                        int C, int X_s0, int A_s0, int Y_s0, int div) {
    const int shift = tw_highest_bit((uint32_t)div);
    if (C <= 0)
        return;
    TW_UNROLL_BY(1)
    for (int row = 0; row < S;) {
        const struct requant_add_rows at = {X + row * X_s0, A + row * A_s0, Y + row * Y_s0,
                                            4 * X_s0,       2 * A_s0,       2 * Y_s0};
        if (row + 4 <= S) {
            requant_add_four(at, mul, add, C, shift);
            row += 4;
        } else {
            requant_add_one(at, mul, add, C, shift);
            row++;
        }
    }
}
