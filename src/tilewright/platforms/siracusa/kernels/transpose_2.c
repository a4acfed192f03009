/* ---
op: Transpose
types: {data: T, transposed: T}
T: [int8, uint8, int32, float32]
when: {rank: "== 2"}
strided: [data, transposed]
# Fitted on the simulator to 88 layers of networks and of random shapes; cores meet in banks.
cycles: "min(D0, D1)*(max(D0, D1)*(2 + OTHERS*0.057) + 12) + 60"
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void transpose_2(const T *data, T *transposed, int D0, int D1, int data_sD0, int data_sD1, int transposed_sD0,
                        int transposed_sD1) {
    tw_turn(sizeof(T), data, data_sD0, data_sD1, transposed, transposed_sD0, transposed_sD1, D0, D1);
}
