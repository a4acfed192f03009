/* ---
op: iLeakyReLU
types: {x: int8, y: int8}
when: {mul: "== 1", shift: "<= 7"}
# Eight at a time, then one by one. A part that is no whole words leaves the next one unaligned.
cycles:
  eights: whole_eights(SIZE)
  unaligned: ragged_fours(x_sPART) * whole_eights(SIZE)
  single: left_of_eights(SIZE)
  call: some(SIZE)
--- */
#include "tilewright_kernel.h"

/* Two words in eight instructions: a byte that is shifted is the larger one where it is negative. */
#define ILEAKYRELU_PAIR                                                                                                \
    TW_NEXT_WORD("t0", "%[x]")                                                                                         \
    TW_NEXT_WORD("t1", "%[x]")                                                                                         \
    ".insn r 0x57, 5, 0x24, t2, t0, %[shift]\n.insn r 0x57, 5, 0x24, t3, t1, %[shift]\n" /* pv.sra.sc.b */             \
    ".insn r 0x57, 1, 0x18, t0, t0, t2\n.insn r 0x57, 1, 0x18, t1, t1, t3\n"             /* pv.max.b */                \
    ".insn s 0x2B, 2, t0, 4(%[y])\n.insn s 0x2B, 2, t1, 4(%[y])\n"                       /* p.sw, pointer moves */

static void ileakyrelu(const int8_t *x, int8_t *y, int SIZE, int shift) {
    if (SIZE >= 8)
        __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[pairs]", "16") ILEAKYRELU_PAIR ".option pop\n"
                         : [x] "+r"(x), [y] "+r"(y)
                         : [pairs] "r"(SIZE >> 3), [shift] "r"(shift)
                         : "t0", "t1", "t2", "t3", "memory");
    for (int i = 0; i < (SIZE & 7); i++)
        y[i] = (int8_t)(x[i] < 0 ? x[i] >> shift : x[i]);
}
