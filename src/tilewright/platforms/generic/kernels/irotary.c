/* ---
op: iRotary
types: {X: T, cosines: int16, sines: int16, position: int32, Y: int8}
T: [int8, int16]
whole: [H, S, D]
# Two results for each pair, four products; rows of all heads take turns among the cores.
cycles:
  pairs: steps(H * S, PARTS) * D
  rows: steps(H * S, PARTS)
  call: some(H)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int16_t T;
#endif

static void irotary(const T *X, const int16_t *cosines, const int16_t *sines, const int32_t *position, int8_t *Y, int H,
                    int S, int D, int cosines_n0, int shift, int PART, int PARTS) {
    const int half = D / 2;
    const uint32_t round = UINT32_C(1) << shift >> 1;
    for (int turn = PART; turn < H * S; turn += PARTS) {
        const int h = turn / S, s = turn % S;
        const ptrdiff_t row = (ptrdiff_t)tw_max(0, tw_min(*position + s, cosines_n0 - 1)) * half;
        const T *const x = X + ((ptrdiff_t)s * H + h) * D;
        int8_t *const y = Y + (ptrdiff_t)turn * D;
        for (int i = 0; i < half; i++) {
            const int32_t cosine = cosines[row + i], sine = sines[row + i], left = x[i], right = x[half + i];
            /* Unsigned sums wrap where tables hold more than they should. */
            const uint32_t first = (uint32_t)(left * cosine) - (uint32_t)(right * sine) + round;
            const uint32_t second = (uint32_t)(right * cosine) + (uint32_t)(left * sine) + round;
            y[i] = (int8_t)tw_clamp((int32_t)first >> shift, -128, 127);
            y[half + i] = (int8_t)tw_clamp((int32_t)second >> shift, -128, 127);
        }
    }
}
