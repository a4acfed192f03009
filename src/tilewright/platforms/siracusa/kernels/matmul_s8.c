/* ---
op: MatMul
types: {A: T, B: U, Y: int32}
T: [int8, uint8]
U: [int8, uint8]
when: {A_sBATCH: ">= 0", B_sBATCH: ">= 0", A_sK: "A_sK == 1 or K == 1"}
epilogue: row
accumulate: [K]
scratch: "20*((K+3)//4)*4"
cycles: "BATCH*(60+((N+15)//16)*(80+M//4*180+M%4*70)+N*K*3+((N+3)//4)*4*(M//4*(((K+3)//4)*7+60)+M%4*(((K+3)//4)*2.25+20)))"
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

/* What is subtracted from B so that it is signed: unsigned values lie around 128. */
#define MIDDLE ((U)(-1) > 0 ? 128 : 0)

static inline int matmul_s8_aligned(const void *start, ptrdiff_t row) {
    return (((uintptr_t)start | (size_t)row) & 3) == 0;
}

/* Clears whole words; the library's memset goes byte by byte. */
static inline void matmul_s8_clear(void *start, int bytes) {
    uint32_t *words = start, zero = 0;
    TW_KEEP(zero);
    for (int i = 0; i < bytes / 4; i++)
        words[i] = zero;
}

/* Four rows of four bytes become four columns. */
static inline void matmul_s8_turn(const uint32_t *in, uint32_t *out) {
    const uint32_t even = 0x00FF00FFu;
    const uint32_t a = (in[0] & even) | (in[1] & even) << 8, b = (in[0] >> 8 & even) | (in[1] & ~even);
    const uint32_t c = (in[2] & even) | (in[3] & even) << 8, d = (in[2] >> 8 & even) | (in[3] & ~even);
    out[0] = (a & 0xFFFFu) | c << 16;
    out[1] = (b & 0xFFFFu) | d << 16;
    out[2] = a >> 16 | (c & 0xFFFF0000u);
    out[3] = b >> 16 | (d & 0xFFFF0000u);
}

/* `count` columns of B as rows of a panel, each `length` long. */
static void matmul_s8_panel(const U *B, ptrdiff_t b_k, ptrdiff_t b_n, int K, int length, int count, int8_t *panel) {
    int begin = 0;
    /* The end of rows that are no whole words, and rows that are missing in a tile of four. */
    for (int j = 0; j < count && K != length; j++)
        matmul_s8_clear(panel + j * length + length - 4, 4);
    matmul_s8_clear(panel + count * length, length * (-count & 3));
    if (b_n == 1 && count % 4 == 0 && matmul_s8_aligned(B, b_k)) {
        begin = K & ~3;
        for (int j = 0; j < count; j += 4) {
            const char *from = (const char *)B + j;
            char *to = (char *)panel + j * length;
            for (int k = 0; k < begin; k += 4, from += 4 * b_k, to += 4) {
                uint32_t in[4], out[4];
                TW_UNROLL for (int i = 0; i < 4; i++) memcpy(in + i, __builtin_assume_aligned(from + i * b_k, 4), 4);
                matmul_s8_turn(in, out);
                TW_UNROLL for (int i = 0; i < 4; i++) {
                    out[i] ^= MIDDLE ? 0x80808080u : 0u;
                    memcpy(__builtin_assume_aligned(to + i * length, 4), out + i, 4);
                }
            }
        }
    }
    for (int j = 0; j < count; j++) {
        for (int k = begin; k < K; k++)
            panel[j * length + k] = (int8_t)(B[k * b_k + j * b_n] - MIDDLE);
    }
}

/* Zero points: (a - za) . (b - zb) = a . b - za * sum(b) - zb * sum(a) + K * za * zb. */
static void matmul_s8_bias(const int8_t *b, ptrdiff_t b_row, int K, int count, int a_zero, int b_zero, int32_t *bias) {
    for (int j = 0; j < count; j++) {
        int32_t sum = 0;
        TW_UNROLL_4 for (int k = 0; k < K; k++) sum += b[j * b_row + k];
        bias[j] = a_zero * (K * b_zero - sum);
    }
}

/* Rows are whole words; those of A that are not are copied. Columns of B that lie side by side are read in place. */
static void matmul_s8(const T *A, const U *B, void *Y, int BATCH, int M, int K, int N, ptrdiff_t A_sBATCH,
                      ptrdiff_t A_sM, ptrdiff_t B_sBATCH, ptrdiff_t B_sK, ptrdiff_t B_sN, int a_zero_point,
                      int b_zero_point, void *scratch, const struct Epilogue *epilogue) {
    const int length = (K + 3) & ~3, b_zero = b_zero_point - MIDDLE;
    int8_t *panel = scratch;
    T *padded = (T *)scratch + 16 * length;
    int32_t bias[16], out[4 * 16];
    matmul_s8_clear(bias, sizeof bias);
    for (int i = 0; i < 4 && length != K; i++)
        matmul_s8_clear(padded + i * length + length - 4, 4);
    for (int batch = 0; batch < BATCH; batch++) {
        const T *const rows_of_a = A + batch * A_sBATCH;
        const int copied = length != K || !matmul_s8_aligned(rows_of_a, A_sM);
        for (int n = 0; n < N; n += 16) {
            const int count = tw_min(16, N - n);
            const U *columns = B + batch * B_sBATCH + n * B_sN;
            const int in_place =
                MIDDLE == 0 && B_sK == 1 && K == length && count % 4 == 0 && matmul_s8_aligned(columns, B_sN);
            const int8_t *b = in_place ? (const int8_t *)columns : panel;
            const ptrdiff_t b_row = in_place ? B_sN : length;
            if (!in_place)
                matmul_s8_panel(columns, B_sK, B_sN, K, length, count, panel);
            if (a_zero_point)
                matmul_s8_bias(b, b_row, K, count, a_zero_point, b_zero, bias);
            for (int m = 0, rows; m < M; m += rows) {
                rows = M - m >= 4 ? 4 : 1;
                const T *a = rows_of_a + m * A_sM;
                ptrdiff_t a_row = A_sM;
                for (int i = 0; i < rows && copied; i++)
                    memcpy(padded + i * length, a + i * A_sM, (size_t)K);
                if (copied) {
                    a = padded;
                    a_row = length;
                }
                tw_dot_rows(rows, count, a, a_row, b, b_row, length, bias, out);
                for (int i = 0; i < rows && b_zero; i++) {
                    int32_t sum = 0;
                    for (int k = 0; k < K; k++)
                        sum += a[i * a_row + k];
                    for (int j = 0; j < 16; j++)
                        out[i * 16 + j] -= b_zero * sum;
                }
                STORE(epilogue, Y, out, ((ptrdiff_t)batch * M + m) * N + n, N, n, rows, count);
            }
        }
    }
}
#undef MIDDLE
