/* ---
op: Lookup
types: {X: T, table: U, Y: U}
T: [int8, uint8]
U: [int8, uint8]
# Eight at a time, then one by one; the banks of the table are shared. Parts may leave the next one unaligned.
cycles:
  eights: whole_eights(SIZE)
  meet: some(OTHERS) * one(PARTS) * whole_eights(SIZE)
  unaligned: ragged_fours(X_sPART) * whole_eights(SIZE)
  single: left_of_eights(SIZE)
  call: some(SIZE)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

/* p.extract or p.extractu of a byte; p.lbu from the table, whose place for 0 is known; pv.packlo.b, pv.packhi.b. */
#define LOOKUP_INDEX(to, word, bit) ".insn r 0x33, %[kind], 0x67, " to ", " word ", x" bit "\n"
#define LOOKUP_ENTRY(to) ".insn r 0x03, 7, 0x20, " to ", %[zero], " to "\n"
#define LOOKUP_LOW(to, b, a) ".insn r 0x57, 1, 0x70, " to ", " b ", " a "\n"
#define LOOKUP_HIGH(to, d, c) ".insn r 0x57, 1, 0x6C, " to ", " d ", " c "\n"
#define LOOKUP_WORD(word)                                                                                              \
    LOOKUP_INDEX("t2", word, "0")                                                                                      \
    LOOKUP_INDEX("t3", word, "8")                                                                                      \
    LOOKUP_INDEX("t4", word, "16")                                                                                     \
    LOOKUP_INDEX("t5", word, "24")                                                                                     \
    LOOKUP_ENTRY("t2")                                                                                                 \
    LOOKUP_ENTRY("t3") LOOKUP_ENTRY("t4") LOOKUP_ENTRY("t5") LOOKUP_LOW(word, "t3", "t2") LOOKUP_HIGH(word, "t5", "t4")

static void lookup_s8(const T *X, const U *table, U *Y, int SIZE) {
    const int is_signed = (T)(-1) < 0;
    const U *const zero = table + (is_signed ? 128 : 0);
    if (SIZE >= 8)
        __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[pairs]", "48") TW_NEXT_WORD("t0", "%[x]")
                             TW_NEXT_WORD("t1", "%[x]") LOOKUP_WORD("t0") ".insn s 0x2B, 2, t0, 4(%[y])\n" LOOKUP_WORD(
                                 "t1") ".insn s 0x2B, 2, t1, 4(%[y])\n.option pop\n"
                         : [x] "+r"(X), [y] "+r"(Y)
                         : [pairs] "r"(SIZE >> 3), [zero] "r"(zero), [kind] "i"((T)(-1) < 0 ? 0 : 1)
                         : "t0", "t1", "t2", "t3", "t4", "t5", "memory");
    for (int i = 0; i < (SIZE & 7); i++)
        Y[i] = zero[X[i]];
}
