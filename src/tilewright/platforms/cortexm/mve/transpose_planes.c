/* ---
op: Transpose
types: {data: T, transposed: T}
T: [int8, uint8]
when: {D3: "D3 > 1 and D3 <= 17", data_sD2: "== 1"}
strided: [data]
cycles:
  # Lines of which nothing is left out are one.
  vectors: D3 * ((LINES := D0 * (JOINED := (data_sD1 == D2) * 1)) * whole_sixteens(D1*D2) + (APART := D0*D1 * unless(JOINED)) * whole_sixteens(D2))
  lines: D3 * (LINES + APART)
  call: some(D0)
--- */
#include "tilewright_mve.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* A few planes become pixels: 16 bytes of a plane at a time, each stored into the next pixel. */
static void transpose_planes(const T *data, T *transposed, int D0, int D1, int D2, int D3, int data_sD0, int data_sD1,
                             int data_sD3) {
    const uint8x16_t place = vmulq_n_u8(vidupq_n_u8(0, 1), (uint8_t)D3);
    if (data_sD1 == D2) { /* lines of which nothing is left out are one */
        D2 *= D1;
        D1 = 1;
    }
    for (int row = 0; row < D0 * D1; row++, transposed += D2 * D3) {
        const T *from = data + row / D1 * data_sD0 + row % D1 * data_sD1;
        for (int plane = 0; plane < D3; plane++, from += data_sD3) {
            const uint8_t *x = (const uint8_t *)from;
            uint8_t *y = (uint8_t *)transposed + plane;
            int left = D2;
            for (; left >= 16; left -= 16, x += 16, y += 16 * D3)
                vstrbq_scatter_offset_u8(y, place, vldrbq_u8(x));
            const mve_pred16_t some = vctp8q((uint32_t)left);
            vstrbq_scatter_offset_p_u8(y, place, vldrbq_z_u8(x, some), some);
        }
    }
}
