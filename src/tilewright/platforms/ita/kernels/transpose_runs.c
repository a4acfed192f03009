/* ---
op: Transpose
types: {data: int8, transposed: int8}
when:
  rank: "rank >= 2 and rank <= 4"
  data_sCOLUMNS: "== 1"
  transposed_sCOLUMNS: "== 1"
  COLUMNS: "COLUMNS % 16 == 0"
  data_sROWS: "data_sROWS % 4 == 0 and data_sPLANES % 4 == 0 and data_sIMAGES % 4 == 0"
  transposed_sROWS: "transposed_sROWS % 4 == 0 and transposed_sPLANES % 4 == 0 and transposed_sIMAGES % 4 == 0"
strided: [data, transposed]
cycles:
  words: IMAGES * PLANES * ROWS * words(COLUMNS)
  rows: IMAGES * PLANES * ROWS
  planes: IMAGES * PLANES
  images: IMAGES
  call: 1
--- */
#include "tilewright_kernel.h"

/* Runs of bytes change places, as where matrices are cut into tiles: four words at a time. */
static void transpose_runs(const int8_t *data, int8_t *transposed, int IMAGES, int PLANES, int ROWS, int COLUMNS,
                           int data_sIMAGES, int data_sPLANES, int data_sROWS, int transposed_sIMAGES,
                           int transposed_sPLANES, int transposed_sROWS) {
    for (int image = 0; image < IMAGES; image++)
        for (int plane = 0; plane < PLANES; plane++) {
            const int8_t *from = data + image * data_sIMAGES + plane * data_sPLANES;
            int8_t *to = transposed + image * transposed_sIMAGES + plane * transposed_sPLANES;
            for (int row = 0; row < ROWS; row++, from += data_sROWS, to += transposed_sROWS)
                for (int column = 0; column < COLUMNS; column += 16) {
                    uint32_t words[4];
                    memcpy(words, __builtin_assume_aligned(from + column, 4), sizeof words);
                    memcpy(__builtin_assume_aligned(to + column, 4), words, sizeof words);
                }
        }
}
