/* ---
op: MaxPool
types: {X: int8, Y: int8}
when: {channels_last: "== 1", N: "== 1", dilations_0: "== 1", dilations_1: "== 1"}
cycles: "OH*OW*C*KH*KW/8"
--- */
/* By CMSIS-NN. */
#include "tilewright_kernel.h"
#include <arm_nnfunctions.h>

static void cmsis_max_pool_s8(const int8_t *X, int8_t *Y, int C, int OH, int OW, int KH, int KW, int X_n1, int X_n2,
                              int strides_0, int strides_1, int pads_0, int pads_1) {
    const cmsis_nn_context context = {0, 0};
    const cmsis_nn_pool_params pool = {{strides_1, strides_0}, {pads_1, pads_0}, {-128, 127}};
    const cmsis_nn_dims in = {1, X_n1, X_n2, C}, window = {1, KH, KW, 1}, out = {1, OH, OW, C};
    (void)arm_max_pool_s8(&context, &pool, &in, X, &window, &out, Y);
}
