/* ---
op: Transpose
types: {data: T, transposed: T}
T: [int8, uint8, int32, float32]
when: {rank: "rank >= 2 and rank <= 4"}
strided: [data, transposed]
# A line of the longer axis at a time, two elements at once. Cores wait for each other where their lines keep to few banks,
# and for bytes of the same word. Arguments that are known at run time only are worked out for each call.
cycles:
  elements: (SIZE := IMAGES * PLANES * ROWS * COLUMNS)
  lines: (LINES := IMAGES * PLANES * min(ROWS, COLUMNS))
  odd: LINES * ragged_twos(max(ROWS, COLUMNS))
  read: (SHARED := some(OTHERS) * one(PARTS)) * SIZE * crowd(data_bytes * ((DOWN := (ROWS > COLUMNS) * 1) * data_sROWS
    + (1 - DOWN) * data_sCOLUMNS), data_bytes * data_sPART)
  written: SHARED * SIZE * crowd(data_bytes * (DOWN * transposed_sROWS + (1 - DOWN) * transposed_sCOLUMNS),
    data_bytes * transposed_sPART)
  bytes: SHARED * SIZE * one(data_bytes)
  uneven: UNEVEN
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* p.lbu or p.lw, p.sb or p.sw, all with a register that their pointer moves by. */
#define TRANSPOSE_PAIRS(LOAD, STORE)                                                                                   \
    __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT(                                                        \
                         "%[pairs]", "8") ".insn r 0x0B, 7, " LOAD ", t0, %[x], %[x_step]\n.insn r 0x0B, 7, " LOAD     \
                                          ", t1, %[x], %[x_step]\n.insn r 0x2B, " STORE                                \
                                          ", 0, %[y_step], %[y], t0\n.insn r 0x2B, " STORE                             \
                                          ", 0, %[y_step], %[y], t1\n.option pop\n"                                    \
                     : [x] "+r"(x), [y] "+r"(y)                                                                        \
                     : [pairs] "r"(length >> 1), [x_step] "r"(x_step), [y_step] "r"(y_step)                            \
                     : "t0", "t1", "memory")

/* Elements one by one, at any distance: of the last two axes of the result, lines of the longer one, for each index of up
 * to two more axes. */
static void transpose(const T *data, T *transposed, int IMAGES, int PLANES, int ROWS, int COLUMNS, int data_sIMAGES,
                      int data_sPLANES, int data_sROWS, int data_sCOLUMNS, int transposed_sIMAGES,
                      int transposed_sPLANES, int transposed_sROWS, int transposed_sCOLUMNS) {
    const int bytes = sizeof(T), down = ROWS > COLUMNS;
    const int lines = down ? COLUMNS : ROWS, length = down ? ROWS : COLUMNS;
    const int x_line = down ? data_sCOLUMNS : data_sROWS, x_step = (down ? data_sROWS : data_sCOLUMNS) * bytes;
    const int y_line = down ? transposed_sCOLUMNS : transposed_sROWS,
              y_step = (down ? transposed_sROWS : transposed_sCOLUMNS) * bytes;
    for (int image = 0; image < IMAGES; image++)
        for (int plane = 0; plane < PLANES; plane++) {
            const T *from = data + image * data_sIMAGES + plane * data_sPLANES;
            T *to = transposed + image * transposed_sIMAGES + plane * transposed_sPLANES;
            for (int line = 0; line < lines; line++, from += x_line, to += y_line) {
                const T *x = from;
                T *y = to;
                if (length > 1 && bytes == 1)
                    TRANSPOSE_PAIRS("0x20", "4");
                else if (length > 1)
                    TRANSPOSE_PAIRS("0x10", "6");
                if (length & 1)
                    *y = *x;
            }
        }
}
