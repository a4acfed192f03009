/* ---
op: ITAAdd
types: {A: int8, B: int8, W: int8, Y: int8}
cycles: "M * N * 4096 * 12" # for each of 64 x 64 results of a tile
--- */
#include "tilewright_kernel.h"

#include "tilewright_ita_scale.h"

static void ita_add(const int8_t *A, const int8_t *B, const int8_t *W, int8_t *Y, int M, int N, int mult, int shift,
                    int add) {
    (void)W;
    for (int i = 0; i < M * N * 64 * 64; i++)
        Y[i] = (int8_t)tw_ita_scaled(A[i] + B[i], mult, shift, add);
}
