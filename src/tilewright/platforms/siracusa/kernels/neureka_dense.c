/* ---
op: Conv
engine: neureka
types: {X: T, W: int8, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", N: "== 1", G: "== 1", KH: "== 3", KW: "== 3", strides_0: "== 1", strides_1: "== 1", dilations_0: "== 1", dilations_1: "== 1", pads_0: "<= 1", pads_1: "<= 1", pads_2: "<= 1", pads_3: "<= 1"}
pack: {W: "G,F,C,KH,KW -> G,F,C/28,plane,bits(KH,KW,C%28)/256"}
jobs:
  - {mode: dense, height: OH, width: OW, inputs: C, outputs: F, weight_bits: weight_planes,
     bottom: "TW_NEUREKA_BEHIND(OH, pads_0, X_n1)", right: "TW_NEUREKA_BEHIND(OW, pads_1, X_n2)"}
--- */
#include "tilewright_kernel.h"
#include "tilewright_neureka.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static TW_IN_PLACE void neureka_dense(const T *X, const int8_t *W, int32_t *Y, int F, int OH, int OW, int C, int X_n1,
                                      int X_n2, int pads_0, int pads_1, int x_zero_point, int weight_low,
                                      int weight_planes) {
    struct tw_neureka_job job = {.input = X,
                                 .weights = W,
                                 .output = Y,
                                 .height = OH,
                                 .width = OW,
                                 .inputs = C,
                                 .outputs = F,
                                 .top = pads_0,
                                 .left = pads_1,
                                 .padding = x_zero_point,
                                 .low = weight_low,
                                 .mode = TW_NEUREKA_WEIGHT_BITS(weight_planes) | TW_NEUREKA_INPUT(T) |
                                         TW_NEUREKA_GIVES_SUMS};
    tw_neureka_image(&job, X_n1, X_n2);
    tw_neureka_describe(&job, TW_NEUREKA_3X3);
}
