/* ---
op: MatMul
types: {A: T, B: int8, Y: int32}
T: [int8, uint8]
when: {M: "== 1", N: "N % 4 == 0", A_sK: "== 1", B_sN: "== 1", A_sBATCH: ">= 0", B_sBATCH: ">= 0", a_zero_point: "== 0", b_zero_point: "== 0"}
epilogue: row
accumulate: [K]
# Four columns at a time: words of four rows, for which constants are loaded once, rows that are left, and results.
cycles:
  words: BATCH * fours(N) * whole_fours(K)
  single: BATCH * fours(N) * left_of_fours(K)
  stores: BATCH * fours(N)
  behind: BATCH * N * FUSED
  constants: some(whole_fours(K))
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* pv.shuffle2.b of two words; pv.sdotsp.b or pv.sdotusp.b. */
#define MATMUL_FLAT_MIX(word, other, which) ".insn r 0x57, 1, 0x64, " word ", " other ", %[" which "]\n"
#define MATMUL_FLAT_DOT(sum, word) ".insn r 0x57, 1, %[dot], %[" sum "], t4, " word "\n"
#define MATMUL_FLAT_ROW(word) ".insn r 0x0B, 7, 0x10, " word ", %[b], %[step]\n"

/* One row times columns that lie side by side: four words of four rows become those of columns where they are multiplied.
 * Words may lie at any address. */
static void matmul_flat_s8(const T *A, const int8_t *B, void *Y, int BATCH, int K, int N, int A_sBATCH, int B_sBATCH,
                           int B_sK, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    for (int batch = 0; batch < BATCH; batch++, A += A_sBATCH, B += B_sBATCH)
        TW_UNROLL_BY(1) for (int n = 0; n < N; n += 4) {
            const T *a = A;
            const int8_t *b = B + n;
            int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
            if (K >= 4)
                __asm__ volatile(
                    ".option push\n.option norvc\n" TW_REPEAT("%[words]", "42") MATMUL_FLAT_ROW("t0")
                        MATMUL_FLAT_ROW("t1") MATMUL_FLAT_ROW("t2") MATMUL_FLAT_ROW("t3")
                            TW_NEXT_WORD("t4", "%[a]") "mv t5, t0\nmv t6, t2\n" MATMUL_FLAT_MIX("t0", "t1", "low")
                                MATMUL_FLAT_MIX("t5", "t1", "high") MATMUL_FLAT_MIX("t2", "t3", "low") MATMUL_FLAT_MIX(
                                    "t6", "t3", "high") "mv t1, t0\nmv t3, t5\n" MATMUL_FLAT_MIX("t0", "t2", "even")
                                    MATMUL_FLAT_MIX("t1", "t2", "odd") MATMUL_FLAT_MIX("t5", "t6", "even")
                                        MATMUL_FLAT_MIX("t3", "t6", "odd") MATMUL_FLAT_DOT("s0", "t0")
                                            MATMUL_FLAT_DOT("s1", "t1") MATMUL_FLAT_DOT("s2", "t5")
                                                MATMUL_FLAT_DOT("s3", "t3") ".option pop\n"
                    : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [a] "+r"(a), [b] "+r"(b)
                    : [words] "r"(K >> 2), [step] "r"(B_sK), [low] "r"(0x05010400u), [high] "r"(0x07030602u),
                      [even] "r"(0x05040100u), [odd] "r"(0x07060302u), [dot] "i"((T)(-1) < 0 ? 0x5C : 0x54)
                    : "t0", "t1", "t2", "t3", "t4", "t5", "t6", "memory");
            TW_UNROLL_BY(1) for (int k = 0; k < (K & 3); k++, a++, b += B_sK) {
                s0 += *a * b[0];
                s1 += *a * b[1];
                s2 += *a * b[2];
                s3 += *a * b[3];
            }
            STORE_4(&e, Y, s0, s1, s2, s3, batch * N + n, n);
        }
}
#undef MATMUL_FLAT_MIX
#undef MATMUL_FLAT_DOT
#undef MATMUL_FLAT_ROW
