/* ---
op: Conv
engine: neureka
types: {X: T, W: int8, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", N: "== 1", G: "== 1", KH: "== 1", KW: "== 1", pads_0: "== 0", pads_1: "== 0", pads_2: "== 0", pads_3: "== 0"}
pack: {W: "G,F,C,KH,KW -> G,F,KH,KW,bits(C/4,bit,C%4)/256"}
cycles: "(strides_0*strides_1 == 1)*((F//32)*(min(((OH*OW)//6+5)//6 + min((OH*OW)%6, 1), ((OH*OW)//5+5)//6 + min((OH*OW)%5, 1)*999, ((OH*OW)//4+5)//6 + min((OH*OW)%4, 1)*999, ((OH*OW)//3+5)//6 + min((OH*OW)%3, 1)*999)*(55*((C+31)//32) + 3) + OH*OW*((32 + 7)//8) + 32) + min(F%32, 1)*(min(((OH*OW)//6+5)//6 + min((OH*OW)%6, 1), ((OH*OW)//5+5)//6 + min((OH*OW)%5, 1)*999, ((OH*OW)//4+5)//6 + min((OH*OW)%4, 1)*999, ((OH*OW)//3+5)//6 + min((OH*OW)%3, 1)*999)*(55*((C+31)//32) + 3) + OH*OW*(((F%32) + 7)//8) + (F%32)) + 12) + (strides_0*strides_1 > 1)*((F//32)*(((OH+5)//6)*((OW+5)//6)*(55*((C+31)//32) + 3) + (6*((OW+5)//6)*(OH - ((OH+5)//6)) + ((OH+5)//6)*OW)*((32 + 7)//8) + 32) + min(F%32, 1)*(((OH+5)//6)*((OW+5)//6)*(55*((C+31)//32) + 3) + (6*((OW+5)//6)*(OH - ((OH+5)//6)) + ((OH+5)//6)*OW)*(((F%32) + 7)//8) + (F%32)) + 12)"
--- */
#include "tilewright_kernel.h"
#include "tilewright_neureka.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static TW_IN_PLACE void neureka_pointwise(const T *X, const int8_t *W, int32_t *Y, int F, int OH, int OW, int C,
                                          int X_n2, int strides_0, int strides_1) {
    struct tw_neureka_job job = {.input = X,
                                 .weights = W,
                                 .output = Y,
                                 .height = OH,
                                 .width = OW,
                                 .inputs = C,
                                 .outputs = F,
                                 .low = TW_NEUREKA_LOWEST,
                                 .mode = TW_NEUREKA_WEIGHT_BITS(8) | TW_NEUREKA_INPUT(T) | TW_NEUREKA_GIVES_SUMS};
    tw_neureka_points(&job, X_n2, strides_0, strides_1);
}
