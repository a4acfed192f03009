/* ---
op: Transpose
types: {data: T, transposed: T}
T: [int8, uint8]
when: {D3: "== 3", data_sD2: "== 1"}
strided: [data]
cycles:
  fours: D0*D1 * whole_fours(D2)
  single: D0*D1 * left_of_fours(D2)
  lines: D0*D1
  call: some(D0)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* The lowest byte of `from` at bit `place` of `to`: BFI. */
#if TW_ARM_DSP
#define PUT(to, from, place) __asm__("bfi %0, %1, #" #place ", #8" : "+r"(to) : "r"(from))
#else
#define PUT(to, from, place) (to = (to & ~(0xFFu << (place))) | ((from) & 0xFFu) << (place))
#endif

/* Three planes become pixels of three bytes: of words a, b and c, a0 b0 c0 a1, b1 c1 a2 b2, c2 a3 b3 c3. */
static void transpose_planes(const T *data, T *transposed, int D0, int D1, int D2, int data_sD0, int data_sD1,
                             int data_sD3) {
    T *y = transposed;
    for (int i = 0; i < D0; i++) {
        for (int j = 0; j < D1; j++) {
            const T *p = data + i * data_sD0 + j * data_sD1, *q = p + data_sD3, *r = q + data_sD3;
            int k = 0;
            for (; k + 4 <= D2; k += 4, y += 12) {
                uint32_t a = tw_load_word(p + k), b = tw_load_word(q + k), c = tw_load_word(r + k);
                uint32_t first = a, second = b >> 8, third = c >> 16;
                PUT(first, b, 8);
                PUT(first, c, 16);
                a >>= 8;
                PUT(first, a, 24);
                c >>= 8;
                PUT(second, c, 8);
                a >>= 8;
                PUT(second, a, 16);
                b >>= 16;
                PUT(second, b, 24);
                a >>= 8;
                PUT(third, a, 8);
                b >>= 8;
                PUT(third, b, 16);
                c >>= 16;
                PUT(third, c, 24);
                tw_store_word(y, first);
                tw_store_word(y + 4, second);
                tw_store_word(y + 8, third);
            }
            for (; k < D2; k++, y += 3)
                y[0] = p[k], y[1] = q[k], y[2] = r[k];
        }
    }
}
#undef PUT
