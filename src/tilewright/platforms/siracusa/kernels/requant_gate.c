/* ---
op: RequantGate
types: {X: int32, mul: int32, add: int32, table: int16, Y: int8}
# Of one row, products are computed one beside the other's scaling. Of a gate beyond 16 bits the table's end is taken, too,
# and what it opens fits 16 bits.
when: {S: "S >= 2", reach: "<= 32768", lowest: "> -32768"}
strided: [X, Y]
# All rows of a pair of columns, whose factors stay in registers.
cycles:
  results: S * F
  columns: F
  call: some(S)
--- */
#include "tilewright_kernel.h"

static void requant_gate(const int32_t *X, const int32_t *mul, const int32_t *add, const int16_t *table, int8_t *Y,
                         int S, int F, int X_s0, int Y_s0, int table_n0, int step, int div, int partner_div,
                         int product_div) {
    const int half = table_n0 / 2, gate_shift = tw_highest_bit((uint32_t)div),
              partner_shift = tw_highest_bit((uint32_t)partner_div), shift = tw_highest_bit((uint32_t)product_div);
    if (S <= 0)
        return;
    TW_UNROLL_BY(1)
    for (int column = 0; column < F; column++, mul += 2, add += 2) {
        const int32_t *x = X + 2 * column;
        int8_t *y = Y + column;
        __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[rows]", "34") TW_NEXT_WORD(
                             "t0", "%[x]") ".insn r 0x0B, 7, 0x10, t1, %[x], %[next]\n" /* p.lw */
                                           "mul t0, t0, %[gate_mul]\n"
                                           "mul t1, t1, %[partner_mul]\n"
                                           /* p.addRNr, p.clip */
                                           ".insn r 0x5B, 6, 0x20, t0, %[gate_add], %[gate_shift]\n"
                                           ".insn r 0x5B, 6, 0x20, t1, %[partner_add], %[partner_shift]\n"
                                           ".insn r 0x33, 1, 0x0A, t2, t0, x16\n"
                                           ".insn r 0x5B, 6, 0x20, t0, x0, %[step]\n"
                                           ".insn r 0x33, 5, 0x0A, t0, t0, %[last]\n" /* p.clipr */
                                           "slli t0, t0, 1\n"
                                           ".insn r 0x03, 7, 0x08, t0, %[middle], t0\n" /* p.lh */
                                           ".insn r 0x33, 1, 0x0A, t1, t1, x16\n"
                                           ".insn r 0x5B, 0, 0x4F, t0, t0, t2\n" /* p.mulsN by 15 */
                                           "mul t0, t0, t1\n"
                                           ".insn r 0x5B, 6, 0x20, t0, x0, %[shift]\n"
                                           ".insn r 0x33, 1, 0x0A, t0, t0, x8\n"
                                           ".insn r 0x2B, 4, 0, %[y_next], %[y], t0\n.option pop\n" /* p.sb */
                         : [x] "+r"(x), [y] "+r"(y)
                         : [rows] "r"(S), [next] "r"(4 * X_s0 - 4), [gate_mul] "r"(mul[0]), [partner_mul] "r"(mul[1]),
                           [gate_add] "r"(add[0]), [partner_add] "r"(add[1]), [gate_shift] "r"(gate_shift),
                           [partner_shift] "r"(partner_shift), [step] "r"(step), [last] "r"(half - 1),
                           [middle] "r"(table + half), [shift] "r"(shift), [y_next] "r"(Y_s0)
                         : "t0", "t1", "t2", "memory");
    }
}
