/* ---
op: Slice
types: {data: T, output: T}
T: [int8, uint8, int32]
when: {D0: "== 1", data_sD3: "data_sD3 == 1 or D3 == 1", data_sD1: ">= 0", data_sD2: ">= 0"}
epilogue: row
strided: [data, output]
# Four channels at a time, then one: of words that are scaled to bytes along the columns, of others along the channels.
cycles:
  scaled: (SCALED := SCALES * several(data_bytes)) * D1 * D2 * whole_fours(D3)
  scaled_rows: SCALED * D1 * whole_fours(D3)
  fours: (1 - SCALED) * D1 * D2 * whole_fours(D3)
  single: D1 * D2 * left_of_fours(D3)
  single_steps: some(STEPS) * D1 * D2 * left_of_fours(D3)
  call: 1
  behind: FUSED * D1 * D2 * (SCALED * left_of_fours(D3) + (1 - SCALED) * D3)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int32_t T;
#endif

/* Some pixels of an image with its channels last. */
static void slice_pixels(const T *data, void *output, int D1, int D2, int D3, int data_sD1, int data_sD2,
                         int output_sD1, int output_sD2, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    int channel = 0;
#if STORE_SCALES
    for (; sizeof(T) == 4 && D2 && channel + 4 <= D3; channel += 4) {
        const struct tw_scale scale = TW_SCALE_OF(&e, channel, 0, 0, 0, 0);
        for (int row = 0; row < D1; row++)
            tw_scale_columns(STORE_SIGNED, (const int32_t *)(const void *)(data + row * data_sD1 + channel), data_sD2,
                             (char *)output + row * output_sD1 + channel, output_sD2, D2, &scale);
    }
#endif
    /* Along the channels: pixels are often a multiple of 64 bytes apart, and cores would meet in one bank. */
    const int fours = D3 & ~3;
    for (int row = 0; row < D1 && channel < D3; row++) {
        const T *pixel = data + row * data_sD1;
        int at = row * output_sD1;
        for (int column = 0; column < D2; column++, pixel += data_sD2, at += output_sD2) {
            for (int i = channel; i < fours; i += 4)
                STORE_4(&e, output, pixel[i], pixel[i + 1], pixel[i + 2], pixel[i + 3], at + i, i);
            for (int i = fours; i < D3; i++)
                STORE_1(&e, output, pixel[i], at + i, i);
        }
    }
}
