/* ---
op: MaxPool
types: {X: float32, Y: float32}
when: {channels_last: "== 1"}
epilogue: row
strided: [X, Y]
# Taps inside the image by four channels, at which cores wait for the unit that they share, and one by one; windows and pixels.
# Pixels whose windows reach over an edge are calls of their own.
cycles:
  quads: N * (ROWS := OH*KH - (OH == Y_n1) * twos(X_o1 * (twos(X_o1) + strides_0)) / strides_0 / dilations_0)
    * (COLUMNS := OW*KW - (OW == Y_n2) * twos(X_o2 * (twos(X_o2) + strides_1)) / strides_1 / dilations_1) * whole_fours(C)
  single: N * ROWS * COLUMNS * left_of_fours(C)
  meetings: FPU_OTHERS * N * ROWS * COLUMNS * whole_fours(C)
  windows: N*OH*OW * (whole_fours(C) + left_of_fours(C))
  pixels: N*OH*OW
  calls: N*OH * (min(OW, steps(min(X_o2, pads_1), strides_1) + (OW == Y_n2) * steps(max(X_o2, pads_1) - pads_1, strides_1)) + some(OW))
  behind: N*OH*OW * C * FUSED
  call: some(N)
--- */
#include "tilewright_pool.h"

/* The largest of a window, for four channels; then for one. Compilers would call a function. */
#define LARGEST_OF_FOUR                                                                                                \
    __asm__ volatile(                                                                                                  \
        TW_WINDOW("24", "18",                                                                                          \
                  "flw ft0, 0(%[x])\nflw ft1, 4(%[x])\nflw ft2, 8(%[x])\nflw ft3, 12(%[x])\n"                          \
                  "fmax.s %[a], %[a], ft0\nfmax.s %[b], %[b], ft1\nfmax.s %[c], %[c], ft2\nfmax.s %[d], %[d], ft3\n"   \
                  "add %[x], %[x], %[step]\n")                                                                         \
        : [a] "+f"(a), [b] "+f"(b), [c] "+f"(c), [d] "+f"(d), [x] "+r"(x)                                              \
        : TW_POOL_STEPS                                                                                                \
        : "ft0", "ft1", "ft2", "ft3", "memory")
#define LARGEST                                                                                                        \
    __asm__ volatile(TW_WINDOW("12", "6", "flw ft0, 0(%[x])\nadd %[x], %[x], %[step]\nfmax.s %[a], %[a], ft0\n")       \
                     : [a] "+f"(a), [x] "+r"(x)                                                                        \
                     : TW_POOL_STEPS                                                                                   \
                     : "ft0", "memory")

TW_APART void largest(const struct tw_pool_line *line, void *Y, const void *epilogue) {
    const struct Epilogue e = *(const struct Epilogue *)epilogue;
    TW_KEEP(line); /* or it is compiled for some networks' sizes, and takes other times there */
    const char *first = line->x;
    const int rows = line->rows, columns = line->columns, step = line->step, jump = line->jump;
    const int x_pixel = line->x_pixel, y_pixel = line->y_pixel, channels = line->channels;
    for (int pixels = line->pixels, at = line->at; pixels > 0; pixels--, first += x_pixel, at += y_pixel) {
        const float *window = (const float *)(const void *)first;
        int channel = 0;
        for (; channel + 4 <= channels; channel += 4, window += 4) {
            const float *x = window;
            float a = x[0], b = x[1], c = x[2], d = x[3];
            LARGEST_OF_FOUR;
            STORE_4(&e, Y, a, b, c, d, at + channel, channel);
        }
        for (; channel < channels; channel++, window++) {
            const float *x = window;
            float a = *x;
            LARGEST;
            STORE_1(&e, Y, a, at + channel, channel);
        }
    }
}

static void maxpool_f32(const float *X, void *Y, int N, int C, int OH, int OW, int KH, int KW, int X_n1, int X_n2,
                        int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1, int Y_s2, int strides_0, int strides_1,
                        int pads_0, int pads_1, int dilations_0, int dilations_1, const struct Epilogue *epilogue) {
    tw_pool_lines(TW_POOL, 4, largest, Y, epilogue);
}
#undef LARGEST_OF_FOUR
#undef LARGEST
