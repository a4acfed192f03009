/* ---
op: Transpose
types: {data: T, transposed: T}
T: [int8, uint8]
when: {data_sD3: "data_sD3 > 1 and data_sD3 <= 17"}
strided: [data]
cycles:
  # Lines of which nothing is left out are one.
  vectors: (LINES := D0*D1 * (JOINED := (data_sD2 == D3*data_sD3) * 1)) * sixteens(D2*D3) + (APART := D0*D1*D2 * unless(JOINED)) * sixteens(D3)
  lines: LINES + APART
  call: some(D0)
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Pixels of a few bytes become planes: 16 bytes of a plane at a time, each loaded from the next pixel. */
static void transpose_pixels(const T *data, T *transposed, int D0, int D1, int D2, int D3, int data_sD0, int data_sD1,
                             int data_sD2, int data_sD3) {
    const uint8x16_t place = vmulq_n_u8(vidupq_n_u8(0, 1), (uint8_t)data_sD3);
    if (data_sD2 == D3 * data_sD3) { /* lines of which nothing is left out are one */
        D3 *= D2;
        D2 = 1;
    }
    uint8_t *y = (uint8_t *)transposed;
    for (int i = 0; i < D0; i++) {
        for (int j = 0; j < D1; j++) {
            for (int k = 0; k < D2; k++) {
                const uint8_t *x = (const uint8_t *)data + i * data_sD0 + j * data_sD1 + k * data_sD2;
                int left = D3;
                for (; left >= 16; left -= 16, x += 16 * data_sD3, y += 16)
                    vstrbq_u8(y, vldrbq_gather_offset_u8(x, place));
                const mve_pred16_t some = vctp8q((uint32_t)left);
                vstrbq_p_u8(y, vldrbq_gather_offset_z_u8(x, place, some), some);
                y += left;
            }
        }
    }
}
