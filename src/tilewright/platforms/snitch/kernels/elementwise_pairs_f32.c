/* ---
op: {Add: "0x41", Sub: "0x42", Mul: "0x43"}
types: {A: float32, B: float32, Y: float32}
when: {A_sCOLUMNS: "A_sCOLUMNS == 1 or COLUMNS == 1", B_sCOLUMNS: "B_sCOLUMNS == 1 or COLUMNS == 1", A_sROWS: ">= 0", B_sROWS: ">= 0", Y_sROWS: ">= 0"}
strided: [A, B, Y]
# Pairs of a row, from one stream each to a third one; rows of which nothing is left out are one. Numbers before the first pair
# and behind the last one, or all where operands lie differently, are single.
cycles:
  rows: (LINES := ROWS - (ROWS - 1) * (A_sROWS == COLUMNS) * (B_sROWS == COLUMNS) * (Y_sROWS == COLUMNS))
  pairs: LINES * whole_twos(LENGTH := ROWS * COLUMNS // max(LINES, 1))
  single: LINES * left_of_twos(LENGTH)
  call: some(ROWS)
--- */
#include "tilewright_streams.h"

#ifndef TW_GENERATED
#define OP 0x41
#endif

/* vfadd.s, vfsub.s or vfmul.s, of which lane 0 of single numbers is used: their funct7 is OP. */
#define INSTRUCTION_OF(code) ".insn r 0x33, 0, " #code ", "
#define INSTRUCTION(code) INSTRUCTION_OF(code)

TW_INLINE void elementwise_pairs_f32_one(const float *a, const float *b, float *y) {
    __asm__ volatile("flw ft3, 0(%0)\nflw ft4, 0(%1)\n" INSTRUCTION(OP) "ft3, ft3, ft4\nfsw ft3, 0(%2)" ::"r"(a),
                     "r"(b), "r"(y)
                     : "ft3", "ft4", "memory");
}

static void elementwise_pairs_f32(const float *A, const float *B, float *Y, int ROWS, int COLUMNS, int A_sROWS,
                                  int B_sROWS, int Y_sROWS) {
    const int joined = A_sROWS == COLUMNS && B_sROWS == COLUMNS && Y_sROWS == COLUMNS;
    const int rows = joined ? 1 : ROWS, columns = joined ? ROWS * COLUMNS : COLUMNS;
    for (int row = 0; row < rows; row++, A += A_sROWS, B += B_sROWS, Y += Y_sROWS) {
        const int alike = (((uintptr_t)A ^ (uintptr_t)B) | ((uintptr_t)A ^ (uintptr_t)Y)) % 8 == 0;
        const int first = alike ? (uintptr_t)A % 8 != 0 : columns, pairs = (columns - first) / 2;
        for (int i = 0; i < tw_min(first, columns); i++)
            elementwise_pairs_f32_one(A + i, B + i, Y + i);
        if (pairs > 0) {
            TW_STREAM_TIMES(0, 1);
            TW_STREAM_TIMES(1, 1);
            TW_STREAM_TIMES(2, 1);
            TW_STREAM_LOOP(0, 0, pairs, 8);
            TW_STREAM_LOOP(1, 0, pairs, 8);
            TW_STREAM_LOOP(2, 0, pairs, 8);
            TW_STREAM_READ(0, 1, A + first);
            TW_STREAM_READ(1, 1, B + first);
            TW_STREAM_WRITE(2, 1, Y + first);
            __asm__ volatile(TW_STREAMS_ON TW_FREP_1("%[more]") INSTRUCTION(OP) "ft2, ft0, ft1\n" TW_STREAMS_OFF
                             :
                             : [more] "r"(pairs - 1)
                             : TW_STREAM_REGISTERS, "memory");
            TW_STREAM_AWAIT(2);
        }
        for (int i = first + pairs * 2; i < columns; i++)
            elementwise_pairs_f32_one(A + i, B + i, Y + i);
    }
}
#undef INSTRUCTION
#undef INSTRUCTION_OF
