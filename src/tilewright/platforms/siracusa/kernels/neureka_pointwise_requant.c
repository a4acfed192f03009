/* ---
op: RequantConv
engine: neureka
types: {X: T, W: int8, mul: int32, add: int32, Y: U}
T: [int8, uint8]
U: [int8, uint8]
when: {channels_last: "== 1", N: "== 1", G: "== 1", KH: "== 1", KW: "== 1", pads_0: "== 0", pads_1: "== 0", pads_2: "== 0", pads_3: "== 0"}
pack: {W: "G,F,C,KH,KW -> G,F,KH,KW,bits(C/4,bit,C%4)/256"}
near: [mul, add]
jobs:
  - {mode: pointwise, height: "TW_NEUREKA_HEIGHT(OH, OW, strides_0*strides_1)", width: "TW_NEUREKA_WIDTH(OH, OW, strides_0*strides_1)", inputs: C, outputs: F, scaled: 1}
  - {mode: pointwise, height: 1, width: "TW_NEUREKA_REST(OH, OW, strides_0*strides_1)", inputs: C, outputs: F, scaled: 1}
--- */
#include "tilewright_kernel.h"
#include "tilewright_neureka.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

static TW_IN_PLACE void neureka_pointwise_requant(const T *X, const int8_t *W, const int32_t *mul, const int32_t *add,
                                                  U *Y, int F, int OH, int OW, int C, int X_n2, int strides_0,
                                                  int strides_1, int shift) {
    struct tw_neureka_job job = {.input = X,
                                 .weights = W,
                                 .output = Y,
                                 .scale = mul,
                                 .bias = add,
                                 .inputs = C,
                                 .outputs = F,
                                 .low = TW_NEUREKA_LOWEST,
                                 .mode = TW_NEUREKA_WEIGHT_BITS(8) | TW_NEUREKA_INPUT(T) |
                                         TW_NEUREKA_GIVES_BYTES(shift, (U)-1 < 0)};
    tw_neureka_points(&job, OH, OW, strides_0 * strides_1, C * strides_1, C * X_n2 * strides_0);
}
