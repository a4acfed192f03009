/* ---
op: MatMul
engine: neureka
types: {A: T, B: int8, Y: int32}
T: [int8, uint8]
# Only where there are results for several passes, and fewer weights are read than in windows of 3x3 pixels: results cannot
# be cut into tiles here.
when: {ROWS: "== 1", K: ">= 3", N: "N > 32 and (N + 2)//3*((K + 83)//84) < N*((K + 251)//252)", A_sK: "== 1", B_sBATCH: "== 0", a_zero_point: "== 0", b_zero_point: "== 0", transA: "== 0", transB: "== 0"}
pack: {B: "K,N -> filter(N),depth(K)/28,plane,bits(pixel(K),column(N),depth(K)%28)/256"}
jobs:
  - {mode: dense, height: 1, width: 3, right: 2, inputs: "TW_NEUREKA_THIRD(K)", outputs: "TW_NEUREKA_THIRD(N)", weight_bits: weight_planes}
--- */
#include "tilewright_kernel.h"
#include "tilewright_neureka.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static TW_IN_PLACE void neureka_columns(const T *A, const int8_t *B, int32_t *Y, int N, int K, int weight_low,
                                        int weight_planes) {
    tw_neureka_columns(A, B, Y, K, N, weight_low,
                       TW_NEUREKA_WEIGHT_BITS(weight_planes) | TW_NEUREKA_INPUT(T) | TW_NEUREKA_GIVES_SUMS);
}
