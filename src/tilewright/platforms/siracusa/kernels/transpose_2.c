/* ---
op: Transpose
types: {data: T, transposed: T}
T: [int8, uint8, int32, float32]
when: {rank: "== 2"}
strided: [data, transposed]
# A line of the longer axis at a time; constants of one core and of 8 from 130 tiles of networks and of random layers.
# Cores that read and write with the same steps get out of each other's way, and meet anew at each line; others wait for
# banks at each element, less where they read side by side. Where steps keep to a bank, each waits for all cores whose
# parts begin in it, too (CROWD), for less where it writes elsewhere.
cycles: "(D0*D1*(2 + (OTHERS > 0)*max(
  (1 - (READ := (FROM_STEP := ((LONGER := (D0 > D1))*data_sD0 + (1-LONGER)*data_sD1)*data_bytes%64) == 0)
  *(WRITTEN := (TO_STEP := (LONGER*transposed_sD0 + (1-LONGER)*transposed_sD1)*data_bytes%64) == 0))
  *((ALIKE := (FROM_STEP == TO_STEP and FROM_STEP > 0)*1)*(0.15 + (data_bytes == 1)*0.3)
  + (1-ALIKE)*((data_bytes > 1)*(0.7 - (FROM_STEP == 4)*0.35)
  + (data_bytes == 1)*(0.87 - (data_sPART <= 8)*(0.25 + (transposed_sPART >= 64)*(TO_STEP%4 == 0)*0.22)))),
  READ*(CROWD := 1 + ((FROM := data_sPART*data_bytes)%16 == 0) + (FROM%32 == 0)*2 + (FROM%64 == 0)*4
  + (FROM%64 == 1)*3 + (FROM%64 == 2))
  + WRITTEN*(1 + ((TO := transposed_sPART*data_bytes)%16 == 0) + (TO%32 == 0)*2 + (TO%64 == 0)*4) - 2,
  READ*(1-WRITTEN)*CROWD*0.68))
  + min(D0, D1)*(7 + (OTHERS > 0)*ALIKE*4*(1 + (data_bytes == 1))) + 13) + 37 - (PARTS <= OTHERS)*67"
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

static void transpose_2(const T *data, T *transposed, int D0, int D1, int data_sD0, int data_sD1, int transposed_sD0,
                        int transposed_sD1) {
    tw_turn(sizeof(T), data, data_sD0, data_sD1, transposed, transposed_sD0, transposed_sD1, D0, D1);
}
