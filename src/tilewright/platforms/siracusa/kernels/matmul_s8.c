/* ---
op: MatMul
types: {A: T, B: U, Y: int32}
T: [int8, uint8]
U: [int8, uint8]
when: {A_sBATCH: ">= 0", B_sBATCH: ">= 0", A_sK: "A_sK == 1 or K == 1"}
epilogue: row
accumulate: [K]
scratch: "20*((K+3)//4)*4"
# Four rows or one by 16 columns, which are copied first: blocks of four words where they lie in words, twice the work where
# these are not turned, else byte by byte. Rows that are no words are copied for each 16 columns. Zero points are sums of
# bytes, subtracted from each result. Each 16 columns are a few calls. Products and shifts behind it take as long as plain stores.
cycles:
  words_of_four_rows: BATCH * whole_fours(M) * fours(N) * words(K)
  words_of_one_row: BATCH * words(K) * (left_of_fours(M) * fours(N) + (LEFT := unless(none(a_zero_point))) * fours(N)
    + (RIGHT := unless(b_zero_point == 128 * unless(B_signed))) * sixteens(N) * (CALLS := whole_fours(M) + left_of_fours(M)))
  stores: BATCH * M * (fours(N) + twos(left_of_fours(N)))
  zero_points: BATCH * (LEFT * fours(N) + RIGHT * (sixteens(N) * CALLS + whole_fours(M) * fours(N)))
  copied_words: BATCH * ((COPIED := max(ragged_fours(K), ragged_fours(A_sM))) * sixteens(N) * fours(M * words(K))
    + ((ACROSS := one(B_sN) * unless(left_of_fours(B_sK))) + (ALONG := unless(ACROSS) * one(B_sK) * unless(left_of_fours(B_sN))) + ALONG)
    * (WHOLE := whole_fours(K) * (whole_fours(N) - ragged_fours(N) * whole_fours(left_of_sixteens(N)))))
  copied_bytes: BATCH * (fours(N) * words(K) + sixteens(K * N) - max(ACROSS, ALONG) * (WHOLE + WHOLE))
  calls: BATCH * sixteens(N) * (max(COPIED, RIGHT) * CALLS + unless(COPIED + RIGHT) * (some(whole_fours(M)) + left_of_fours(M)) + some(M) + some(M))
  behind: unless(SHIFTS * STEPS) * BATCH * M * N * FUSED
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

/* What is subtracted from B so that it is signed: unsigned values lie around 128. */
#define MIDDLE ((U)(-1) > 0 ? 128 : 0)

static inline int matmul_s8_aligned(const void *start, int row) { return (((int)(uintptr_t)start | row) & 3) == 0; }

/* Four rows of words become four columns of them, `words` times. */
static inline void matmul_s8_turn(const U *from, int row, int words, uint32_t *to) {
    const U *x0 = from, *x1 = x0 + row, *x2 = x1 + row, *x3 = x2 + row;
    const uint32_t flip = MIDDLE ? 0x80808080u : 0u;
    if (words)
        __asm__ volatile(
            ".option push\n.option norvc\n" TW_REPEAT(
                "%[words]",
                "48") ".insn r 0x0B, 7, 0x10, t0, %[x0], %[step]\n.insn r 0x0B, 7, 0x10, t1, %[x1], %[step]\n"
                      ".insn r 0x0B, 7, 0x10, t2, %[x2], %[step]\n.insn r 0x0B, 7, 0x10, t3, %[x3], %[step]\n"
                      "xor t0, t0, %[flip]\nxor t1, t1, %[flip]\nxor t2, t2, %[flip]\nxor t3, t3, %[flip]\n"
                      "mv t4, t0\nmv t5, t2\n"
                      ".insn r 0x57, 1, 0x64, t0, t1, %[low]\n.insn r 0x57, 1, 0x64, t4, t1, %[high]\n"
                      ".insn r 0x57, 1, 0x64, t2, t3, %[low]\n.insn r 0x57, 1, 0x64, t5, t3, %[high]\n"
                      "mv t1, t0\nmv t3, t4\n"
                      ".insn r 0x57, 1, 0x64, t0, t2, %[even]\n.insn r 0x57, 1, 0x64, t1, t2, %[odd]\n"
                      ".insn r 0x57, 1, 0x64, t4, t5, %[even]\n.insn r 0x57, 1, 0x64, t3, t5, %[odd]\n"
                      ".insn s 0x2B, 2, t0, 4(%[to])\n.insn s 0x2B, 2, t1, 4(%[to])\n"
                      ".insn s 0x2B, 2, t4, 4(%[to])\n.insn s 0x2B, 2, t3, 4(%[to])\n.option pop\n"
            : [x0] "+r"(x0), [x1] "+r"(x1), [x2] "+r"(x2), [x3] "+r"(x3), [to] "+r"(to)
            : [words] "r"(words), [step] "r"(4 * row), [flip] "r"(flip), [low] "r"(0x05010400u),
              [high] "r"(0x07030602u), [even] "r"(0x05040100u), [odd] "r"(0x07060302u)
            : "t0", "t1", "t2", "t3", "t4", "t5", "memory");
}

/* `count` columns of B, the words of four taking turns. */
TW_APART void matmul_s8_panel(const U *B, int b_k, int b_n, int K, int count, uint32_t *panel) {
    const int words = (K + 3) >> 2, fours = count & 3 ? 0 : K >> 2;
    const int across = b_n == 1 && matmul_s8_aligned(B, b_k), along = b_k == 1 && matmul_s8_aligned(B, b_n);
    for (int j = 0; j < count; j += 4, B += 4 * b_n) {
        const U *from = B;
        if (across) {
            matmul_s8_turn(from, b_k, fours, panel);
            panel += 4 * fours;
        }
        for (int w = 0; w < fours && along && !across; w++, from += 4, panel += 4) {
            TW_UNROLL for (int i = 0; i < 4; i++) {
                memcpy(panel + i, __builtin_assume_aligned(from + i * b_n, 4), 4);
                panel[i] ^= MIDDLE ? 0x80808080u : 0u;
            }
        }
        /* Words that are not whole, and columns that are missing. */
        for (int w = across || along ? fours : 0; w < words; w++, panel += 4) {
            for (int i = 0; i < 4; i++) {
                uint32_t word = 0;
                for (int k = 4 * w; k < tw_min(4 * w + 4, K) && j + i < count; k++)
                    word |= (uint32_t)(uint8_t)(B[k * b_k + i * b_n] - MIDDLE) << (8 * (k & 3));
                panel[i] = word;
            }
        }
    }
}

/* sum[i] = the sum of the bytes of `words` words, which are `step` bytes apart. */
#define MATMUL_S8_SUMS(CODE)                                                                                           \
    __asm__ volatile(                                                                                                  \
        ".option push\n.option norvc\n" TW_REPEAT(                                                                     \
            "%[words]",                                                                                                \
            "16") ".insn r 0x0B, 7, 0x10, t0, %[x0], %[step]\n.insn r 0x0B, 7, 0x10, t1, %[x1], %[step]\n"             \
                  ".insn r 0x0B, 7, 0x10, t2, %[x2], %[step]\n.insn r 0x0B, 7, 0x10, t3, %[x3], %[step]\n" TW_SDOT(    \
                      CODE, "%[s0]", "t0", "%[ones]") TW_SDOT(CODE, "%[s1]", "t1", "%[ones]")                          \
                      TW_SDOT(CODE, "%[s2]", "t2", "%[ones]") TW_SDOT(CODE, "%[s3]", "t3", "%[ones]") ".option pop\n"  \
        : [x0] "+r"(x0), [x1] "+r"(x1), [x2] "+r"(x2), [x3] "+r"(x3), [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2),     \
          [s3] "+r"(s3)                                                                                                \
        : [words] "r"(words), [step] "r"(step), [ones] "r"(0x01010101)                                                 \
        : "t0", "t1", "t2", "t3", "memory")
TW_APART void matmul_s8_sums(const void *const *from, int step, int words, const int is_signed, int32_t *sum) {
    const void *x0 = from[0], *x1 = from[1], *x2 = from[2], *x3 = from[3];
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    if (is_signed)
        MATMUL_S8_SUMS(TW_SDOT_S8);
    else
        MATMUL_S8_SUMS(TW_SDOT_U8);
    sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3;
}
#undef MATMUL_S8_SUMS

/* Zero points: (a - za) . (b - zb) = a . b - za * sum(b) - zb * sum(a) + K * za * zb. */
static inline void matmul_s8_bias(const uint32_t *panel, int words, int count, int a_zero, int constant,
                                  int32_t *bias) {
    for (int j = 0; j < count; j += 4, panel += 4 * words) {
        matmul_s8_sums((const void *const[]){panel, panel + 1, panel + 2, panel + 3}, 16, words, 1, bias + j);
        for (int i = 0; i < 4; i++)
            bias[j + i] = constant - a_zero * bias[j + i];
    }
}

/* Rows by fours, `row` apart in A and `pitch` in Y, from four that are given; `minus` is subtracted from those. Each column
 * has a bias, or all have that of the first four. */
TW_APART void four_rows(struct tw_runs *runs, const T *A, int row, int rows, int biased, const int32_t *minus, void *Y,
                        int at, int pitch, int channel, int count, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const struct tw_runs given = *runs;
    int32_t sum[16];
    for (int m = 0; m < rows; m += 4, at += 4 * pitch) {
        runs->b = given.b;
        runs->bias = given.bias;
        TW_UNROLL for (int i = 0; i < 4; i++) runs->a[i] = (const T *)given.a[i] + m * row;
        for (int n = 0; n < count; n += 4) {
            TW_FOR_BYTES(A, tw_dot_runs)(runs, 1, sum);
            if (minus) {
                TW_UNROLL for (int i = 0; i < 16; i++) sum[i] -= minus[i / 4];
            }
            if (n + 4 <= count) {
                /* Unrolled, the loop over columns is longer than the 512 bytes of a core's cache. */
                TW_UNROLL_BY(1) for (int i = 0; i < 4; i++) {
                    const int32_t *four = sum + 4 * i;
                    STORE_4(&e, Y, four[0], four[1], four[2], four[3], at + i * pitch + n, channel + n);
                }
            } else {
                for (int i = 0; i < 4; i++)
                    STORE(epilogue, Y, sum + i * 4, at + i * pitch + n, 0, channel + n, 1, count - n);
            }
            runs->bias += biased ? 4 : 0;
        }
    }
}

TW_APART void one_row(struct tw_runs *runs, const T *A, int biased, int32_t minus, void *Y, int at, int channel,
                      int count, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const int32_t *bias = biased ? runs->bias : NULL;
    const void *a = runs->a[0], *b = runs->b;
    const int words = runs->words;
    for (int n = 0; n < count; n += 4) {
        int32_t sum[4];
        TW_UNROLL for (int i = 0; i < 4; i++) sum[i] = (bias ? bias[n + i] : 0) - minus;
        b = TW_FOR_BYTES(A, tw_dot_row)(a, b, words, sum);
        if (n + 4 <= count) {
            STORE_4(&e, Y, sum[0], sum[1], sum[2], sum[3], at + n, channel + n);
        } else {
            const int32_t last[4] = {sum[0], sum[1], sum[2], sum[3]};
            STORE(epilogue, Y, last, at + n, 0, channel + n, 1, count - n);
        }
    }
    runs->b = b;
}

/* Rows of one word each: up to four of them times `count` words side by side. */
TW_APART void words_only(struct tw_runs *runs, const T *A, int rows, void *Y, int at, int pitch, int channel, int count,
                         const struct Epilogue *epilogue) {
    int32_t sum[64];
    for (int n = 0; n < count; n += 16) {
        const int some = tw_min(16, count - n);
        const uint32_t *b = (const uint32_t *)runs->b + n;
        for (int i = 0; i < rows; i++) {
            const uint32_t a = *(const uint32_t *)runs->a[i];
            if (some > 1)
                TW_FOR_BYTES(A, tw_dot_words)(a, b, some >> 1, sum + 16 * i);
            if (some & 1)
                sum[16 * i + some - 1] = TW_FOR_BYTES(A, tw_sdot)(0, a, b[some - 1]);
        }
        STORE(epilogue, Y, sum, at + n, pitch, channel + n, rows, some);
    }
}

/* Rows are whole words; those of A that are not are copied. So are columns of B, unless there is just one word in each. */
static void matmul_s8(const T *A, const U *B, void *Y, int BATCH, int M, int K, int N, int A_sBATCH, int A_sM,
                      int B_sBATCH, int B_sK, int B_sN, int a_zero_point, int b_zero_point, void *scratch,
                      const struct Epilogue *epilogue) {
    const int length = (K + 3) & ~3, words = length >> 2, b_zero = b_zero_point - MIDDLE;
    const int in_place = MIDDLE == 0 && B_sK == 1 && K == 4 && B_sN == 4;
    T *padded = (T *)scratch + 16 * length;
    int32_t bias[16], minus[4];
    struct tw_runs runs = {.words = words, .rows = 1};
    tw_fill_words(bias, 0, 16);
    for (int i = 0; i < 4 && length != K; i++)
        tw_fill_words(padded + (i + 1) * length - 4, 0, 1);
    for (int batch = 0; batch < BATCH; batch++) {
        const T *const rows_of_a = A + batch * A_sBATCH;
        const int copied = length != K || !matmul_s8_aligned(rows_of_a, A_sM);
        for (int n = 0, count; n < N; n += count) {
            const U *columns = B + batch * B_sBATCH + n * B_sN;
            const int direct = in_place && !a_zero_point && !b_zero && matmul_s8_aligned(columns, 0);
            const void *panel = direct ? (const void *)columns : scratch;
            count = direct ? N : tw_min(16, N - n);
            const int by_words = words == 1 && !a_zero_point && !b_zero && (count >= 16 || (direct && count & 3));
            if (!direct)
                matmul_s8_panel(columns, B_sK, B_sN, K, count, scratch);
            if (a_zero_point)
                matmul_s8_bias(scratch, words, count, a_zero_point, K * a_zero_point * b_zero, bias);
            for (int m = 0, rows; m < M; m += rows) {
                rows = M - m < 4 ? 1 : copied || b_zero || by_words ? 4 : (M - m) & ~3;
                const T *a = rows_of_a + m * A_sM;
                const int a_row = copied ? length : A_sM, at = (batch * M + m) * N + n;
                for (int i = 0; i < rows && copied; i++)
                    tw_copy_bytes(padded + i * length, a + i * A_sM, K);
                if (copied)
                    a = padded;
                for (int i = 0; i < 4; i++) {
                    runs.a[i] = a + (rows > 1 ? i * a_row : 0);
                    minus[i] = 0;
                }
                if (b_zero) {
                    matmul_s8_sums(runs.a, 4, words, (T)(-1) < 0, minus);
                    for (int i = 0; i < 4; i++)
                        minus[i] *= b_zero;
                }
                runs.b = panel;
                runs.bias = bias;
                if (by_words && rows == 4)
                    words_only(&runs, A, rows, Y, at, N, n, count, epilogue);
                else if (rows >= 4)
                    four_rows(&runs, A, a_row, rows, a_zero_point, b_zero ? minus : NULL, Y, at, N, n, count, epilogue);
                else
                    one_row(&runs, A, a_zero_point, minus[0], Y, at, n, direct ? count & ~3 : count, epilogue);
                if (!direct || rows > 1 || !(count & 3)) /* nothing is read beyond B */
                    continue;
                if (STORE_AGAIN && count > 4) {
                    runs.b = (const uint32_t *)panel + count - 4;
                    one_row(&runs, A, 0, 0, Y, at + count - 4, n + count - 4, 4, epilogue);
                } else {
                    words_only(&runs, A, 1, Y, at + (count & ~3), N, n + (count & ~3), count & 3, epilogue);
                }
            }
        }
    }
}
#undef MIDDLE
