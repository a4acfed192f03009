/* ---
op: MatMul
types: {A: T, B: U, Y: int32}
T: [int8, uint8]
U: [int8, uint8]
when: {A_sBATCH: ">= 0", B_sBATCH: ">= 0", A_sK: "A_sK == 1 or K == 1", B_sK: "B_sK == 1 or B_sN == 1 or K == 1"}
epilogue: lanes
scratch: "32*((K+15)//16*16) + 256 + 128*min(16, (M+1)//2*2)"
cycles:
  vectors: BATCH * fours(N) * twos(M) * sixteens(K)
  packed: BATCH * (one(B_sK) * N * sixteens(K) + unless(one(B_sK)) * eights(N) * K)
  # Sums of columns, where A has a zero point, and of rows, where B has one.
  summed: BATCH * sixteens(K) * (unless(A_signed) * N + (b_zero_point != 128 * (1 - B_signed)) * M * (PANELS := steps(N, 32)))
  columns: BATCH * N
  rows: BATCH * PANELS * M
  single: BATCH * M * left_of_fours(N)
  lanes: BATCH * M * fours(N)
  behind: BATCH * M * N * FUSED
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

/* Up to 32 columns of B, packed as weights are. Unsigned bytes become signed. */
TW_APART void pack(const U *B, int b_k, int b_n, int K, int count, int8_t *panel) {
    const uint8x16_t flip = vdupq_n_u8((U)-1 > 0 ? 0x80 : 0);
    const int length = tw_round16(K);
    if (b_k == 1 || K == 1) {
        for (int j = 0; j < count; j++) {
            const uint8_t *from = (const uint8_t *)B + j * b_n;
            uint8_t *to = (uint8_t *)panel + j / 4 * 4 * length + j % 4 * 16;
            for (int k = 0; k < K; k += 16, from += 16, to += 64) {
                const mve_pred16_t some = vctp8q((uint32_t)(K - k));
                const uint8x16_t bytes = veorq_u8(vldrbq_z_u8(from, some), flip);
                vstrbq_u8(to, vpselq_u8(bytes, vdupq_n_u8(0), some)); /* behind the last ones there are zeros */
            }
        }
        return;
    }
    uint16_t places[8];
    for (int i = 0; i < 8; i++)
        places[i] = (uint16_t)(i / 4 * 4 * length + i % 4 * 16);
    const uint16x8_t place = vldrhq_u16(places);
    if (K < length)
        tw_fill((char *)panel, vdupq_n_u8(0), (count + 3) / 4 * 4 * length);
    for (int j = 0; j < count; j += 8) {
        const mve_pred16_t some = vctp16q((uint32_t)(count - j));
        const uint8_t *from = (const uint8_t *)B + j;
        uint8_t *to = (uint8_t *)panel + j / 4 * 4 * length;
        for (int k = 0; k < K; k += 16, to += 48) {
            for (int i = tw_min(16, K - k); i > 0; i--, from += b_k, to++) {
                const uint16x8_t bytes = veorq_u16(vldrbq_z_u16(from, some), vreinterpretq_u16_u8(flip));
                vstrbq_scatter_offset_p_u16(to, place, bytes, some);
            }
        }
    }
}

/* The sum of bytes, of which unsigned ones become signed before. */
TW_APART int32_t sum_of(const T *x, int count) {
    int32_t sum = (T)-1 > 0 ? -128 * count : 0;
    for (int i = 0; i < count; i += 16) {
        const mve_pred16_t some = vctp8q((uint32_t)(count - i));
        sum = (T)-1 > 0 ? (int32_t)vaddvaq_p_u8((uint32_t)sum, vldrbq_z_u8((const uint8_t *)x + i, some), some)
                        : vaddvaq_p_s8(sum, vldrbq_z_s8((const int8_t *)x + i, some), some);
    }
    return sum;
}

/* A row of sums, less what they have in common. */
TW_INLINE void finish(const struct Epilogue *epilogue, void *Y, const int32_t *sums, int32_t minus, int at, int channel,
                      int count) {
    const struct Epilogue e = *epilogue;
    int n = 0;
#if STORE_HAS_LANES
    for (; n + 4 <= count; n += 4, sums += 4)
        STORE_LANES(&e, Y, vsubq_n_s32(vldrwq_s32(sums), minus), at + n, channel + n);
#endif
    for (; n + 4 <= count; n += 4, sums += 4)
        STORE_4(&e, Y, sums[0] - minus, sums[1] - minus, sums[2] - minus, sums[3] - minus, at + n, channel + n);
    for (int i = 0; i < 3 && n + i < count; i++)
        STORE_1(&e, Y, sums[i] - minus, at + n + i, channel + n + i);
}

/* Zero points: (a - za) . (b - zb) = a . b - za * sum(b) - zb * sum(a) + K * za * zb, of signed bytes. */
static void matmul_s8(const T *A, const U *B, void *Y, int BATCH, int M, int K, int N, int A_sBATCH, int A_sM,
                      int B_sBATCH, int B_sK, int B_sN, int a_zero_point, int b_zero_point, void *scratch,
                      const struct Epilogue *epilogue) {
    const int flip = (T)-1 > 0, most = tw_min(16, (M + 1) / 2 * 2);
    const int a_zero = a_zero_point - (flip ? 128 : 0), b_zero = b_zero_point - ((U)-1 > 0 ? 128 : 0);
    int32_t *const first = scratch, *const sums = first + 64;
    int8_t *const panel = (int8_t *)(sums + 32 * most);
    for (int part = 0; part < BATCH * ((N + 31) / 32); part++) {
        const int batch = part / ((N + 31) / 32), n = part % ((N + 31) / 32) * 32, count = tw_min(32, N - n);
        const T *const a = A + batch * A_sBATCH;
        pack(B + batch * B_sBATCH + n * B_sN, B_sK, B_sN, K, count, panel);
        tw_dots_first(first, 2, a_zero != 0, NULL, panel, K, count); /* 128 * sums */
        for (int i = 0; i < (count + 3) / 4 * 8 && a_zero; i += 4) {
            const tw_lanes sum = vshrq_n_s32(vldrwq_s32(first + i), 7);
            vstrwq_s32(first + i, vaddq_n_s32(vmulq_n_s32(sum, -a_zero), K * a_zero * b_zero));
        }
        struct tw_dots dots = tw_dots_of(2, flip, K, count, panel, first);
        dots.step = 2 * A_sM;
        for (int m = 0, rows; m < M; m += rows) {
            rows = tw_min(most, M - m);
            dots.a0 = a + m * A_sM;
            dots.a1 = a + (m + 1) * A_sM;
            dots.sums = sums;
            dots.pairs = rows / 2;
            if (rows > 1)
                TW_FOR_BYTES(A, tw_dot_pairs)(&dots);
            if (rows % 2) { /* the last row is computed twice */
                dots.a0 = dots.a1 = a + (m + rows - 1) * A_sM;
                dots.sums = sums + (rows - 1) * (dots.row / 4);
                dots.pairs = 1;
                TW_FOR_BYTES(A, tw_dot_pairs)(&dots);
            }
            for (int i = 0; i < rows; i++) {
                const int32_t minus = b_zero ? b_zero * sum_of(a + (m + i) * A_sM, K) : 0;
                finish(epilogue, Y, sums + i * (dots.row / 4), minus, (batch * M + m + i) * N + n, n, count);
            }
        }
    }
}
