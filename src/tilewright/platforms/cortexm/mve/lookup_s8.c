/* ---
op: Lookup
types: {X: T, table: U, Y: U}
T: [int8, uint8]
U: [int8, uint8]
cycles:
  sixteens: sixteens(SIZE)
  call: some(SIZE)
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef int8_t U;
#endif

/* 16 entries by one instruction. Tables begin with the entry of the smallest number. */
static void lookup_s8(const T *X, const U *table, U *Y, int SIZE) {
    const uint8x16_t flip = vdupq_n_u8((T)-1 < 0 ? 0x80 : 0);
    const uint8_t *x = (const uint8_t *)X;
    uint8_t *y = (uint8_t *)Y;
    for (; SIZE >= 16; SIZE -= 16, x += 16, y += 16)
        vstrbq_u8(y, vldrbq_gather_offset_u8((const uint8_t *)table, veorq_u8(vldrbq_u8(x), flip)));
    const mve_pred16_t some = vctp8q((uint32_t)SIZE);
    const uint8x16_t last = veorq_u8(vldrbq_z_u8(x, some), flip);
    vstrbq_p_u8(y, vldrbq_gather_offset_z_u8((const uint8_t *)table, last, some), some);
}
