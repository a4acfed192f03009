/* ---
op: MatMul
engine: neureka
types: {A: T, B: int8, Y: int32}
T: [int8, uint8]
when: {A_sK: "A_sK == 1 or K == 1", B_sBATCH: "== 0", a_zero_point: "== 0", b_zero_point: "== 0", transA: "== 0", transB: "== 0"}
pack: {B: "K,N -> N,bits(K/4,bit,K%4)/256"}
jobs:
  - {mode: pointwise, height: "TW_NEUREKA_HEIGHT(1, ROWS, 1)", width: "TW_NEUREKA_WIDTH(1, ROWS, 1)", inputs: K, outputs: N}
  - {mode: pointwise, height: 1, width: "TW_NEUREKA_REST(1, ROWS, 1)", inputs: K, outputs: N}
--- */
#include "tilewright_kernel.h"
#include "tilewright_neureka.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static TW_IN_PLACE void neureka_matmul(const T *A, const int8_t *B, int32_t *Y, int ROWS, int N, int K, int A_sROWS) {
    struct tw_neureka_job job = {.input = A,
                                 .weights = B,
                                 .output = Y,
                                 .inputs = K,
                                 .outputs = N,
                                 .low = TW_NEUREKA_LOWEST,
                                 .mode = TW_NEUREKA_WEIGHT_BITS(8) | TW_NEUREKA_INPUT(T) | TW_NEUREKA_GIVES_SUMS};
    tw_neureka_points(&job, 1, ROWS, 1, A_sROWS, 0);
}
