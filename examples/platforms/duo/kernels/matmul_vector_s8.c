/* ---
op: MatMul
types: {A: int8, B: int8, Y: int32}
when: {K: "K % 4 == 0", A_sK: "== 1", A_sROWS: "A_sROWS == K or ROWS == 1", B_sBATCH: "== 0", a_zero_point: "== 0", b_zero_point: "== 0"}
pack: {B: "K,N -> N,K"}
epilogue: row
cycles:
  words: ROWS * N * words(K) # the innermost loop
  results: ROWS * N # its start, and a result
  rows: ROWS
  scaled: ROWS * N * SHIFTS # a product and a shift behind it
  behind: ROWS * N * unless(SHIFTS) * STEPS # other steps
  call: 1
--- */
#include "tilewright_kernel.h"

/* The product of two rows of bytes, four at a time: a hardware loop (lp.setup) of two loads that move their pointers (p.lw)
 * and four products that are added to a sum (pv.sdotsp.b). */
static inline int32_t matmul_vector_s8_dot(const int8_t *a, const int8_t *b, int words) {
    int32_t sum = 0;
    __asm__ volatile(".option push\n.option norvc\n.insn i 0x7B, 4, x0, %[words], 6\n"
                     ".insn i 0x0B, 2, t0, 4(%[a])\n.insn i 0x0B, 2, t1, 4(%[b])\n"
                     ".insn r 0x57, 1, 0x5C, %[sum], t0, t1\n.option pop\n"
                     : [sum] "+r"(sum), [a] "+r"(a), [b] "+r"(b)
                     : [words] "r"(words)
                     : "t0", "t1", "memory");
    return sum;
}

static void matmul_vector_s8(const int8_t *A, const int8_t *B, void *Y, int ROWS, int N, int K,
                             const struct Epilogue *epilogue) {
    const struct Epilogue behind = *epilogue; /* in registers */
    for (int row = 0; row < ROWS; row++)
        for (int n = 0; n < N; n++)
            STORE_1(&behind, Y, matmul_vector_s8_dot(A + row * K, B + n * K, K / 4), row * N + n, n);
}
