/* ---
op: RequantMatMul
engine: neureka
types: {A: T, B: int8, mul: int32, add: int32, Y: U}
T: [int8, uint8]
U: [int8, uint8]
when: {ROWS: "== 1", K: ">= 9", A_sK: "== 1", B_sBATCH: "== 0"}
pack: {B: "K,N -> N,channel(K)/28,plane,bits(tap(K),channel(K)%28)/256"}
near: [mul, add]
jobs:
  - {mode: dense, height: 1, width: 1, inputs: "TW_NEUREKA_CHANNELS(K)", outputs: N, weight_bits: weight_planes, scaled: 1}
--- */
#include "tilewright_kernel.h"
#include "tilewright_neureka.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

static TW_IN_PLACE void neureka_row_requant(const T *A, const int8_t *B, const int32_t *mul, const int32_t *add, U *Y,
                                            int N, int K, int weight_low, int weight_planes, int shift) {
    tw_neureka_row(A, B, Y, TW_NEUREKA_CHANNELS(K), TW_NEUREKA_ROW(K), N, weight_low,
                   TW_NEUREKA_WEIGHT_BITS(weight_planes) | TW_NEUREKA_INPUT(T) |
                       TW_NEUREKA_GIVES_BYTES(shift, (U)-1 < 0),
                   mul, add);
}
