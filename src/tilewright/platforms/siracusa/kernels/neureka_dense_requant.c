/* ---
op: RequantConv
engine: neureka
types: {X: T, W: int8, mul: int32, add: int32, Y: U}
T: [int8, uint8]
U: [int8, uint8]
when: {channels_last: "== 1", N: "== 1", G: "== 1", KH: "== 3", KW: "== 3", strides_0: "== 1", strides_1: "== 1", dilations_0: "== 1", dilations_1: "== 1", pads_0: "<= 1", pads_1: "<= 1", pads_2: "<= 1", pads_3: "<= 1"}
pack: {W: "G,F,C,KH,KW -> G,F,C/28,plane,bits(KH,KW,C%28)/256"}
near: [mul, add]
jobs:
  - {mode: dense, height: OH, width: OW, inputs: C, outputs: F, weight_bits: weight_planes, scaled: 1,
     bottom: "TW_NEUREKA_BEHIND(OH, pads_0, X_n1)", right: "TW_NEUREKA_BEHIND(OW, pads_1, X_n2)"}
--- */
#include "tilewright_kernel.h"
#include "tilewright_neureka.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

static TW_IN_PLACE void neureka_dense_requant(const T *X, const int8_t *W, const int32_t *mul, const int32_t *add, U *Y,
                                              int F, int OH, int OW, int C, int X_n1, int X_n2, int pads_0, int pads_1,
                                              int x_zero_point, int weight_low, int weight_planes, int shift) {
    struct tw_neureka_job job = {.input = X,
                                 .weights = W,
                                 .output = Y,
                                 .scale = mul,
                                 .bias = add,
                                 .height = OH,
                                 .width = OW,
                                 .inputs = C,
                                 .outputs = F,
                                 .top = pads_0,
                                 .left = pads_1,
                                 .padding = x_zero_point,
                                 .low = weight_low,
                                 .mode = TW_NEUREKA_WEIGHT_BITS(weight_planes) | TW_NEUREKA_INPUT(T) |
                                         TW_NEUREKA_GIVES_BYTES(shift, (U)-1 < 0)};
    tw_neureka_image(&job, X_n1, X_n2);
    tw_neureka_describe(&job, TW_NEUREKA_3X3);
}
