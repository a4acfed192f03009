/* ---
op: MatMul
engine: neureka
types: {A: T, B: int8, Y: int32}
T: [int8, uint8]
when: {ROWS: "== 1", K: ">= 9", A_sK: "== 1", B_sBATCH: "== 0", a_zero_point: "== 0", b_zero_point: "== 0", transA: "== 0", transB: "== 0"}
pack: {B: "K,N -> N,channel(K)/28,plane,bits(tap(K),channel(K)%28)/256"}
jobs:
  - {mode: dense, height: 1, width: 1, inputs: "TW_NEUREKA_CHANNELS(K)", outputs: N, weight_bits: weight_planes}
--- */
#include "tilewright_kernel.h"
#include "tilewright_neureka.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static TW_IN_PLACE void neureka_row(const T *A, const int8_t *B, int32_t *Y, int N, int K, int weight_low,
                                    int weight_planes) {
    tw_neureka_row(A, B, Y, TW_NEUREKA_CHANNELS(K), TW_NEUREKA_ROW(K), N, weight_low,
                   TW_NEUREKA_WEIGHT_BITS(weight_planes) | TW_NEUREKA_INPUT(T) | TW_NEUREKA_GIVES_SUMS, NULL, NULL);
}
