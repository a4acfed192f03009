/* ---
op: RequantMatMul
engine: neureka
types: {A: T, B: int8, mul: int32, add: int32, Y: U}
T: [int8, uint8]
U: [int8, uint8]
when: {A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0"}
pack: {B: "K,N -> N,bits(K/4,bit,K%4)/256"}
near: [mul, add]
jobs:
  - {mode: pointwise, height: "TW_NEUREKA_HEIGHT(1, ROWS, 1)", width: "TW_NEUREKA_WIDTH(1, ROWS, 1)", inputs: K, outputs: N, scaled: 1}
  - {mode: pointwise, height: 1, width: "TW_NEUREKA_REST(1, ROWS, 1)", inputs: K, outputs: N, scaled: 1}
--- */
#include "tilewright_kernel.h"
#include "tilewright_neureka.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

static TW_IN_PLACE void neureka_matmul_requant(const T *A, const int8_t *B, const int32_t *mul, const int32_t *add,
                                               U *Y, int ROWS, int N, int K, int A_sROWS, int shift) {
    struct tw_neureka_job job = {.input = A,
                                 .weights = B,
                                 .output = Y,
                                 .scale = mul,
                                 .bias = add,
                                 .inputs = K,
                                 .outputs = N,
                                 .low = TW_NEUREKA_LOWEST,
                                 .mode = TW_NEUREKA_WEIGHT_BITS(8) | TW_NEUREKA_INPUT(T) |
                                         TW_NEUREKA_GIVES_BYTES(shift, (U)-1 < 0)};
    tw_neureka_points(&job, 1, ROWS, 1, A_sROWS, 0);
}
