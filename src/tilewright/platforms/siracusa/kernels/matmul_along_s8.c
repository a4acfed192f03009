/* ---
op: MatMul
types: {A: T, B: int8, Y: int32}
T: [int8, uint8]
when: {K: "K % 4 == 0 and K > 0", N: ">= 4", A_sK: "== 1", B_sK: "== 1", A_sBATCH: ">= 0", B_sBATCH: ">= 0", a_zero_point: "== 0", b_zero_point: "== 0"}
epilogue: row
# A row by four columns at a time, word by word. Where columns lie a multiple of the banks' 64 bytes apart, all loads of a
# turn fall on one bank, and cores may wait for each other.
cycles:
  words: (QUADS := BATCH * M * fours(N)) * words(K)
  one_bank: some(OTHERS) * none(left_of_sixteens(words(B_sN))) * QUADS * words(K)
  stores: QUADS
  last_stores: BATCH * M * ragged_fours(N)
  behind: BATCH * M * N * FUSED
  call: some(BATCH)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Rows times columns that lie one behind another, as queries times the keys of a cache: nothing is copied, and the code is
 * short, which is cold most of the time. Words may lie at any address. */
#define ALONG(CODE)                                                                                                    \
    __asm__ volatile(".option push\n.option norvc\n" TW_REPEAT("%[words]", "18") TW_NEXT_WORD("t0", "%[a]")            \
                         TW_NEXT_WORD("t1", "%[b]") ".insn r 0x03, 7, 0x10, t2, %[b], %[one]\n"                        \
                                                    ".insn r 0x03, 7, 0x10, t3, %[b], %[two]\n"                        \
                                                    ".insn r 0x03, 7, 0x10, t4, %[b], %[three]\n" TW_SDOT(             \
                                                        CODE, "%[s0]", "t0", "t1") TW_SDOT(CODE, "%[s1]", "t0", "t2")  \
                                                        TW_SDOT(CODE, "%[s2]", "t0", "t3")                             \
                                                            TW_SDOT(CODE, "%[s3]", "t0", "t4") ".option pop\n"         \
                     : [a] "+r"(a), [b] "+r"(b), [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3)            \
                     : [words] "r"(K >> 2), [one] "r"(B_sN - 4), [two] "r"(2 * B_sN - 4), [three] "r"(3 * B_sN - 4)    \
                     : "t0", "t1", "t2", "t3", "t4", "memory")

static void matmul_along_s8(const T *A, const int8_t *B, void *Y, int BATCH, int M, int K, int N, int A_sBATCH,
                            int A_sM, int B_sBATCH, int B_sN, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    for (int batch = 0, at = 0; batch < BATCH; batch++)
        for (int m = 0; m < M; m++, at += N) {
            const T *const row = A + batch * A_sBATCH + m * A_sM;
            const int8_t *b = B + batch * B_sBATCH;
            for (int n = 0; n < N; n += 4) {
                const int left = N - n;
                if (left < 4) { /* the last four begin with some of those before them */
                    n = N - 4;
                    b += (left - 4) * B_sN;
                }
                const T *a = row;
                int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
                if ((T)(-1) < 0)
                    ALONG(TW_SDOT_S8);
                else
                    ALONG(TW_SDOT_U8);
                b += 4 * B_sN - K;
                if (left >= 4 || STORE_AGAIN) {
                    STORE_4(&e, Y, s0, s1, s2, s3, at + n, n);
                } else {
                    const int32_t last[4] = {s0, s1, s2, s3};
                    STORE(epilogue, Y, last + 4 - left, at + N - left, 0, N - left, 1, left);
                }
            }
        }
}
#undef ALONG
