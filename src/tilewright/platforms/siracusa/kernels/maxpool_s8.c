/* ---
op: MaxPool
types: {X: T, Y: T}
T: [int8, uint8]
when: {channels_last: "== 1"}
strided: [X, Y]
# Taps inside the image by eight channels, by four and one by one; rows of taps, windows and pixels. Pixels whose windows reach
# over an edge are calls of their own. Of words, two of four lie at odd addresses where channels are even, else three.
cycles:
  pairs: N * (ROWS := OH*KH - (OH == Y_n1) * twos(X_o1 * (twos(X_o1) + strides_0)) / strides_0 / dilations_0)
    * (COLUMNS := OW*KW - (OW == Y_n2) * twos(X_o2 * (twos(X_o2) + strides_1)) / strides_1 / dilations_1) * whole_eights(C)
  single: N * ROWS * COLUMNS * (FEW := whole_fours(left_of_eights(C)) + left_of_fours(C))
  odd_words: N * ROWS * COLUMNS * (ragged_twos(C) + ragged_fours(C) + ragged_fours(C)) * whole_fours(C)
  rows: N * ROWS * OW * (whole_eights(C) + FEW)
  windows: N*OH*OW * (whole_eights(C) + FEW)
  pixels: N*OH*OW
  calls: N*OH * (min(OW, steps(min(X_o2, pads_1), strides_1) + (OW == Y_n2) * steps(max(X_o2, pads_1) - pads_1, strides_1)) + some(OW))
  call: some(N)
--- */
#include "tilewright_pool.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* The largest bytes of a window, of two words and of one: pv.max.b or pv.maxu.b; then of single ones: p.max. Pointers
 * move with a load. Words may lie at any address. */
#define NEXT(LOAD, to) ".insn r 0x0B, 7, " LOAD ", " to ", %[x], %[step]\n"
#define MOST(CODE, to, other) ".insn r 0x57, 1, " CODE ", " to ", " to ", " other "\n"
#define WORDS(CODE)                                                                                                    \
    __asm__ volatile(                                                                                                  \
        TW_WINDOW("14", "8", "lw t1, 4(%[x])\n" NEXT("0x10", "t0") MOST(CODE, "%[b]", "t1") MOST(CODE, "%[a]", "t0"))  \
        : [a] "+r"(a), [b] "+r"(b), [x] "+r"(x)                                                                        \
        : TW_POOL_STEPS                                                                                                \
        : "t0", "t1", "memory")
#define WORD(CODE)                                                                                                     \
    __asm__ volatile(TW_WINDOW("12", "6", NEXT("0x10", "t0") "nop\n" MOST(CODE, "%[a]", "t0"))                         \
                     : [a] "+r"(a), [x] "+r"(x)                                                                        \
                     : TW_POOL_STEPS                                                                                   \
                     : "t0", "memory")
#define BYTE(LOAD)                                                                                                     \
    __asm__ volatile(TW_WINDOW("12", "6", NEXT(LOAD, "t0") "nop\n.insn r 0x33, 6, 0x02, %[a], %[a], t0\n")             \
                     : [a] "+r"(a), [x] "+r"(x)                                                                        \
                     : TW_POOL_STEPS                                                                                   \
                     : "t0", "memory")
#define IS_SIGNED ((T)(-1) < 0)

TW_INLINE uint32_t word_at(const T *x, const int offset) {
    uint32_t found;
    __asm__ volatile("lw %0, %1(%2)" : "=r"(found) : "i"(offset), "r"(x) : "memory");
    return found;
}
/* p.sw, the pointer moves. */
TW_INLINE T *put_word(T *y, uint32_t value) {
    __asm__ volatile(".insn s 0x2B, 2, %1, 4(%0)" : "+r"(y) : "r"(value) : "memory");
    return y;
}

TW_APART void largest(const struct tw_pool_line *line, void *Y, const void *none) {
    (void)none;
    TW_KEEP(line); /* or it is compiled for some networks' sizes, and takes other times there */
    const T *first = line->x;
    T *to = (T *)Y + line->at;
    const int rows = line->rows, columns = line->columns, step = line->step, jump = line->jump;
    const int x_pixel = line->x_pixel, y_pixel = line->y_pixel, channels = line->channels;
    for (int pixels = line->pixels; pixels > 0; pixels--, first += x_pixel, to += y_pixel) {
        const T *window = first;
        T *y = to;
        int left = channels;
        for (; left >= 8; left -= 8, window += 8) {
            const T *x = window;
            uint32_t a = word_at(x, 0), b = word_at(x, 4);
            if (IS_SIGNED)
                WORDS("0x18");
            else
                WORDS("0x1C");
            y = put_word(y, a);
            y = put_word(y, b);
        }
        if (left >= 4) {
            const T *x = window;
            uint32_t a = word_at(x, 0);
            if (IS_SIGNED)
                WORD("0x18");
            else
                WORD("0x1C");
            y = put_word(y, a);
            left -= 4, window += 4;
        }
        for (; left > 0; left--, window++, y++) {
            const T *x = window;
            int a = *x;
            if (IS_SIGNED)
                BYTE("0x00");
            else
                BYTE("0x20");
            *y = (T)a;
        }
    }
}

static void maxpool_s8(const T *X, T *Y, int N, int C, int OH, int OW, int KH, int KW, int X_n1, int X_n2, int X_s0,
                       int X_s1, int X_s2, int Y_s0, int Y_s1, int Y_s2, int strides_0, int strides_1, int pads_0,
                       int pads_1, int dilations_0, int dilations_1) {
    tw_pool_lines(TW_POOL, 1, largest, Y, 0);
}
#undef NEXT
#undef MOST
#undef WORDS
#undef WORD
#undef BYTE
#undef IS_SIGNED
