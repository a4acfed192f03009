/* ---
op: Transpose
types: {data: T, transposed: T}
T: [int8, uint8]
when: {D3: "== 3", data_sD2: "== 1"}
strided: [data]
# Four pixels at a time, then one. Lines that are no multiple of four leave the next one unaligned.
cycles:
  fours: D0 * D1 * whole_fours(D2)
  meet: some(OTHERS) * one(PARTS) * D0 * D1 * whole_fours(D2)
  unaligned: ragged_fours(D2) * D0 * D1 * whole_fours(D2)
  starts: D0 * D1 * some(whole_fours(D2))
  single: D0 * D1 * left_of_fours(D2)
  call: some(D0)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Three planes become pixels of three bytes. Four pixels, of words a, b and c: a0 b0 c0 a1, b1 c1 a2 b2, c2 a3 b3 c3.
 * pv.shuffle2.b: each byte of the selector names one of the four of `to` (0 to 3) or of `from` (4 to 7). */
#define TRANSPOSE_SHUFFLE(to, from, selector) ".insn r 0x57, 1, 0x64, " to ", " from ", %[" selector "]\n"
#define TRANSPOSE_STORE(from) ".insn s 0x2B, 2, " from ", 4(%[y])\n"
static void transpose_planes(const T *data, T *transposed, int D0, int D1, int D2, int data_sD0, int data_sD1,
                             int data_sD3) {
    T *y = transposed;
    for (int i = 0; i < D0; i++)
        for (int j = 0; j < D1; j++) {
            const T *a = data + i * data_sD0 + j * data_sD1, *b = a + data_sD3, *c = b + data_sD3;
            if (D2 >= 4)
                __asm__ volatile(
                    ".option push\n.option norvc\n" TW_REPEAT("%[fours]", "28") TW_NEXT_WORD("t0", "%[a]")
                        TW_NEXT_WORD("t1", "%[b]")
                            TW_NEXT_WORD("t2", "%[c]") "mv t3, t0\nmv t4, t1\n" TRANSPOSE_SHUFFLE("t3", "t1", "ab")
                                TRANSPOSE_SHUFFLE("t4", "t0", "ba") TRANSPOSE_SHUFFLE("t3", "t2", "abc")
                                    TRANSPOSE_SHUFFLE("t4", "t2", "bac") TRANSPOSE_SHUFFLE("t2", "t0", "ca")
                                        TRANSPOSE_SHUFFLE("t2", "t1", "cab") TRANSPOSE_STORE("t3") TRANSPOSE_STORE("t4")
                                            TRANSPOSE_STORE("t2") ".option pop\n"
                    : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [y] "+r"(y)
                    : [fours] "r"(D2 >> 2), [ab] "r"(0x01000400), [abc] "r"(0x03040100), [ba] "r"(0x02060001),
                      [bac] "r"(0x03020500), [ca] "r"(0x03000702), [cab] "r"(0x03070100)
                    : "t0", "t1", "t2", "t3", "t4", "memory");
            for (int k = 0; k < (D2 & 3); k++)
                *y++ = a[k], *y++ = b[k], *y++ = c[k];
        }
}
