/* ---
op: ITALinear
types: {X: int8, W: int8, B: uint8, Y: int8}
# Tiles that are multiplied, tiles that come of them, and those that GELU curves.
cycles:
  products: M * N * K
  results: M * N
  curves: M * N * none(activation - 1)
--- */
#include "tilewright_kernel.h"

#include "tilewright_ita_scale.h"

/* Sums have 26 bits. */
static inline int32_t ita_linear_wrapped(uint32_t sum) { return (int32_t)(sum << 6) >> 6; }

static void ita_linear(const int8_t *X, const int8_t *W, const uint8_t *B, int8_t *Y, int M, int N, int K, int mult,
                       int shift, int add, int activation, int b, int c, int act_mult, int act_shift, int act_add,
                       int turned) {
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++)
            for (int i = 0; i < 64; i++)
                for (int j = 0; j < 64; j++) {
                    const uint8_t *bias = B + (turned ? m * 64 + i : n * 64 + j) * 3;
                    int32_t sum =
                        (int32_t)((uint32_t)bias[0] << 8 | (uint32_t)bias[1] << 16 | (uint32_t)bias[2] << 24) >> 8;
                    for (int k = 0; k < K; k++) {
                        const int8_t *x = X + ((m * K + k) * 64 + i) * 64, *w = W + ((n * K + k) * 64 + j) * 64;
                        for (int l = 0; l < 64; l++)
                            sum += x[l] * w[l];
                    }
                    int32_t q = tw_ita_scaled(ita_linear_wrapped((uint32_t)sum), mult, shift, add);
                    if (activation == 1) {
                        const int32_t beyond = (q < 0 ? -q : q) + b, below = beyond > 0 ? 0 : beyond;
                        const int32_t curve = below * below + c;
                        q = ita_linear_wrapped((uint32_t)q * (uint32_t)((q < 0 ? -curve : curve) + c));
                        q = tw_ita_scaled(q, act_mult, act_shift, act_add);
                    } else if (activation == 2)
                        q = tw_ita_scaled(q > 0 ? q : 0, act_mult, act_shift, act_add);
                    Y[((m * N + n) * 64 + i) * 64 + j] = (int8_t)q;
                }
}
