/* ---
op: Transpose
types: {data: T, transposed: T}
T: [int8, uint8, int32, float32]
when: {rank: "== 4"}
strided: [data, transposed]
# Fitted on the simulator to 88 layers of networks and of random shapes; cores meet in banks.
cycles: "D0*D1*(min(D2, D3)*(max(D2, D3)*(2 + OTHERS*0.057) + 12) + 20) + 40"
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void transpose_4(const T *data, T *transposed, int D0, int D1, int D2, int D3, int data_sD0, int data_sD1,
                        int data_sD2, int data_sD3, int transposed_sD0, int transposed_sD1, int transposed_sD2,
                        int transposed_sD3) {
    for (int i = 0; i < D0; i++)
        for (int j = 0; j < D1; j++)
            tw_turn(sizeof(T), data + i * data_sD0 + j * data_sD1, data_sD2, data_sD3,
                    transposed + i * transposed_sD0 + j * transposed_sD1, transposed_sD2, transposed_sD3, D2, D3);
}
