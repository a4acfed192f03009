/* ---
op: MaxPool
types: {X: T, Y: T}
T: [int8, uint8]
when: {channels_last: "== 1"}
strided: [X, Y]
# Taps are those inside the image. Up to two lines of windows of one size are no loop. Fitted on the simulator to 40 layers
# of 1 to 128 channels and 2 to 64 taps.
cycles: "N*OH*((PADDED := (pads_0+pads_1+pads_2+pads_3 > 0))*30
  + OW*((C//8)*((TAPS := (ROWS := KH - (OH == Y_n1)*X_o1/max(OH, 1))*(KW - (OW == Y_n2)*X_o2/max(OW, 1)))*4
  + (LINES := (LOOPS := (PADDED or KH > 2))*(ROWS*7 + 2) + (1-LOOPS)*(KH*2.6 + 3)) + 8)
  + (C%8//4)*(TAPS*3 + LINES + 5) + (C%4)*(TAPS*3 + LINES + 4)
  + (C//4)*TAPS*((C%4 > 0)*0.6 + (OTHERS > 0)*0.2) + (C > 1)*5 + PADDED*10)) + 60 + FIRST*LOOPS*150"
--- */
#include "tilewright_dot.h"
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* The largest bytes of neighbours, of two words and of one: pv.max.b or pv.maxu.b; then of single ones: p.max. Pointers
 * move with a load. Words may lie at any address. */
#define NEXT(LOAD, to) ".insn r 0x0B, 7, " LOAD ", " to ", %[x], %[step]\n"
#define MOST(CODE, to, other) ".insn r 0x57, 1, " CODE ", " to ", " to ", " other "\n"
#define WORDS(CODE)                                                                                                    \
    __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[count]", "8") "lw t1, 4(%[x])\n" NEXT("0x10", "t0")  \
                         MOST(CODE, "%[b]", "t1") MOST(CODE, "%[a]", "t0") ".option pop\n"                             \
                     : [a] "+r"(a), [b] "+r"(b), [x] "+r"(x)                                                           \
                     : [count] "r"(columns), [step] "r"(x_col)                                                         \
                     : "t0", "t1", "memory")
#define WORD(CODE)                                                                                                     \
    __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[count]", "6")                                        \
                         NEXT("0x10", "t0") "nop\n" MOST(CODE, "%[a]", "t0") ".option pop\n"                           \
                     : [a] "+r"(a), [x] "+r"(x)                                                                        \
                     : [count] "r"(columns), [step] "r"(x_col)                                                         \
                     : "t0", "memory")
#define BYTE(LOAD)                                                                                                     \
    __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[count]", "6")                                        \
                         NEXT(LOAD, "t0") "nop\n.insn r 0x33, 6, 0x02, %[a], %[a], t0\n.option pop\n"                  \
                     : [a] "+r"(a), [x] "+r"(x)                                                                        \
                     : [count] "r"(columns), [step] "r"(x_col)                                                         \
                     : "t0", "memory")
#define IS_SIGNED ((T)(-1) < 0)

TW_INLINE uint32_t word_at(const T *x) {
    uint32_t found;
    __asm__ volatile("lw %0, 0(%1)" : "=r"(found) : "r"(x) : "memory");
    return found;
}
TW_INLINE void put_word(T *y, uint32_t value) { __asm__ volatile("sw %0, 0(%1)" : : "r"(value), "r"(y) : "memory"); }

/* Every window has a tap inside the image, as ONNX demands. */
static void maxpool_s8(const T *X, T *Y, int N, int C, int OH, int OW, int KH, int KW, int X_n1, int X_n2, int X_s0,
                       int X_s1, int X_s2, int Y_s0, int Y_s1, int Y_s2, int strides_0, int strides_1, int pads_0,
                       int pads_1, int dilations_0, int dilations_1) {
    const int x_row = X_s1 * dilations_0, x_col = X_s2 * dilations_1;
    for (int n = 0; n < N; n++)
        for (int oh = 0; oh < OH; oh++) {
            const int ih = oh * strides_0 - pads_0;
            const struct tw_span kh = tw_inside(ih, X_n1, KH, dilations_0);
            for (int ow = 0; ow < OW; ow++) {
                const int iw = ow * strides_1 - pads_1;
                const struct tw_span kw = tw_inside(iw, X_n2, KW, dilations_1);
                const T *window = X + n * X_s0 + ih * X_s1 + kh.begin * x_row + iw * X_s2 + kw.begin * x_col;
                T *y = Y + n * Y_s0 + oh * Y_s1 + ow * Y_s2;
                const int columns = kw.end - kw.begin, jump = x_row - columns * x_col;
                int left = C;
                for (; left >= 8; left -= 8, window += 8, y += 8) {
                    const T *x = window;
                    uint32_t a = word_at(x), b = word_at(x + 4);
                    for (int row = kh.begin; row < kh.end; row++, x += jump)
                        if (IS_SIGNED)
                            WORDS("0x18");
                        else
                            WORDS("0x1C");
                    put_word(y, a);
                    put_word(y + 4, b);
                }
                if (left >= 4) {
                    const T *x = window;
                    uint32_t a = word_at(x);
                    for (int row = kh.begin; row < kh.end; row++, x += jump)
                        if (IS_SIGNED)
                            WORD("0x18");
                        else
                            WORD("0x1C");
                    put_word(y, a);
                    left -= 4, window += 4, y += 4;
                }
                for (; left > 0; left--, window++, y++) {
                    const T *x = window;
                    int a = *x;
                    for (int row = kh.begin; row < kh.end; row++, x += jump)
                        if (IS_SIGNED)
                            BYTE("0x00");
                        else
                            BYTE("0x20");
                    *y = (T)a;
                }
            }
        }
}
#undef NEXT
#undef MOST
#undef WORDS
#undef WORD
#undef BYTE
#undef IS_SIGNED
