/* ---
op: RequantAdd
types: {X: int32, mul: int32, add: int32, A: int16, Y: int16}
strided: [X, A, Y]
# Row by row, in a loop that the core counts.
cycles:
  results: S * C
  rows: S
  call: some(S)
--- */
#include "tilewright_kernel.h"

static void requant_add(const int32_t *X, const int32_t *mul, const int32_t *add, const int16_t *A, int16_t *Y, int S,
                        int C, int X_s0, int A_s0, int Y_s0, int div, int n_levels) {
    const int shift = tw_highest_bit((uint32_t)div), limit = n_levels / 2 - 1, rows = C > 0 ? S : 0;
    TW_UNROLL_BY(1)
    for (int row = 0; row < rows; row++) {
        const int32_t *x = X + row * X_s0, *m = mul, *b = add;
        const int16_t *a = A + row * A_s0;
        int16_t *y = Y + row * Y_s0;
        __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[columns]", "20") TW_NEXT_WORD("t0", "%[x]")
                             TW_NEXT_WORD("t1", "%[m]") TW_NEXT_WORD("t2", "%[b]")
                         /* p.lh, p.addRNr, p.clipr, p.clip, p.sh */
                         ".insn i 0x0B, 1, t3, %[a], 2\n"
                         "mul t0, t0, t1\n"
                         ".insn r 0x5B, 6, 0x20, t0, t2, %[shift]\n"
                         ".insn r 0x33, 5, 0x0A, t0, t0, %[limit]\n"
                         "add t0, t0, t3\n"
                         ".insn r 0x33, 1, 0x0A, t0, t0, x16\n"
                         ".insn s 0x2B, 1, t0, 2(%[y])\n.option pop\n"
                         : [x] "+r"(x), [m] "+r"(m), [b] "+r"(b), [a] "+r"(a), [y] "+r"(y)
                         : [columns] "r"(C), [shift] "r"(shift), [limit] "r"(limit)
                         : "t0", "t1", "t2", "t3", "memory");
    }
}
