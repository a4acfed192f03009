/* ---
op: Transpose
engine: mover
types: {data: int8, transposed: int8}
when:
  rank: "rank >= 3 and rank <= 4"
  data_sCOLUMNS: "== 1"
  transposed_sCOLUMNS: "== 1"
  COLUMNS: "COLUMNS % 64 == 0"
  ROWS: "ROWS % 64 == 0 or PLANES % 64 == 0" # shorter transfers take longer to start than to do
strided: [data, transposed]
cycles: "IMAGES * ROWS * PLANES * COLUMNS / 64"
--- */
#include "tilewright_kernel.h"

#include "tilewright_mover.h"

/* Lines of the DMA change places, one in a cycle: the longer one of two loops is that of a transfer's rows. */
static void transpose_moved(const int8_t *data, int8_t *transposed, int IMAGES, int PLANES, int ROWS, int COLUMNS,
                            int data_sIMAGES, int data_sPLANES, int data_sROWS, int transposed_sIMAGES,
                            int transposed_sPLANES, int transposed_sROWS) {
    const int along = ROWS > PLANES, rows = along ? ROWS : PLANES, others = along ? PLANES : ROWS;
    const int from_row = along ? data_sROWS : data_sPLANES, from_other = along ? data_sPLANES : data_sROWS;
    const int to_row = along ? transposed_sROWS : transposed_sPLANES,
              to_other = along ? transposed_sPLANES : transposed_sROWS;
    tw_await_mover(1); /* transfers before may still write what these read */
    for (int image = 0; image < IMAGES; image++)
        for (int other = 0; other < others; other++)
            tw_mover_start(transposed + image * transposed_sIMAGES + other * to_other,
                           data + image * data_sIMAGES + other * from_other, (size_t)COLUMNS, rows, to_row, from_row);
}
