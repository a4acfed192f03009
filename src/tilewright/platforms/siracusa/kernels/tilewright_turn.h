/* Elements of two axes copied one by one, at any distance: loads and stores that move their pointers on. */
#ifndef TILEWRIGHT_TURN_H
#define TILEWRIGHT_TURN_H

#include <stdint.h>

/* p.lbu or p.lw, p.sb or p.sw, all with a register that their pointer moves by. */
#define TW_TURN_PAIRS(LOAD, STORE)                                                                                     \
    __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT(                                                        \
                         "%[pairs]", "8") ".insn r 0x0B, 7, " LOAD ", t0, %[x], %[x_step]\n.insn r 0x0B, 7, " LOAD     \
                                          ", t1, %[x], %[x_step]\n.insn r 0x2B, " STORE                                \
                                          ", 0, %[y_step], %[y], t0\n.insn r 0x2B, " STORE                             \
                                          ", 0, %[y_step], %[y], t1\n.option pop\n"                                    \
                     : [x] "+r"(from), [y] "+r"(to)                                                                    \
                     : [pairs] "r"(length >> 1), [x_step] "r"(x_step), [y_step] "r"(y_step)                            \
                     : "t0", "t1", "memory")

/* `lines` times `length` elements of one or four bytes; distances are in bytes. */
static inline __attribute__((always_inline)) void tw_turn_lines(const int bytes, const char *x, int x_line, int x_step,
                                                                char *y, int y_line, int y_step, int lines,
                                                                int length) {
    for (int line = 0; line < lines; line++, x += x_line, y += y_line) {
        const char *from = x;
        char *to = y;
        if (length > 1 && bytes == 1)
            TW_TURN_PAIRS("0x20", "4");
        else if (length > 1)
            TW_TURN_PAIRS("0x10", "6");
        if (length & 1 && bytes == 1)
            *to = *from;
        else if (length & 1)
            *(uint32_t *)(void *)to = *(const uint32_t *)(const void *)from;
    }
}

/* The longer axis is the inner one. */
static inline __attribute__((always_inline)) void tw_turn(const int bytes, const void *from, int x_a, int x_b, void *to,
                                                          int y_a, int y_b, int a, int b) {
    const char *x = (const char *)from;
    char *y = (char *)to;
    const int swap = a > b;
    const int x_line = (swap ? x_b : x_a) * bytes, x_step = (swap ? x_a : x_b) * bytes;
    const int y_line = (swap ? y_b : y_a) * bytes, y_step = (swap ? y_a : y_b) * bytes;
    tw_turn_lines(bytes, x, x_line, x_step, y, y_line, y_step, swap ? b : a, swap ? a : b);
}

#endif
