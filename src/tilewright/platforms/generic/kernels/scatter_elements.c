/* ---
op: ScatterElements
types: {data: T, indices: I, updates: T, output: T}
T: [float32, float64, float16, bfloat16, int8, uint8, int16, uint16, int32, uint32, int64, uint64, bool]
I: [int32, int64]
when: {REDUCTION: "== 0", RANK: "<= 8"}
# All is copied, then places of updates are found axis by axis.
cycles:
  copied: words(SIZE * data_bytes)
  places: RANK * (UPDATES := INDICES0 * INDICES1 * INDICES2 * INDICES3 * INDICES4 * INDICES5 * INDICES6 * INDICES7)
  updates: UPDATES
--- */
#include "tilewright_kernel.h"

/* A copy of the data, then every update at its place; an index outside the axis changes nothing. */
static void scatter_elements(const T *data, const I *indices, const T *updates, T *output, int SIZE, int RANK, int AXIS,
                             int DATA0, int DATA1, int DATA2, int DATA3, int DATA4, int DATA5, int DATA6, int DATA7,
                             int INDICES0, int INDICES1, int INDICES2, int INDICES3, int INDICES4, int INDICES5,
                             int INDICES6, int INDICES7) {
    const int extents[8] = {DATA0, DATA1, DATA2, DATA3, DATA4, DATA5, DATA6, DATA7};
    const int counts[8] = {INDICES0, INDICES1, INDICES2, INDICES3, INDICES4, INDICES5, INDICES6, INDICES7};
    int at[8] = {0};
    int total = 1;
    for (int d = 0; d < RANK; d++)
        total *= counts[d];
    if (output != data)
        memcpy(output, data, (size_t)SIZE * sizeof(T));
    for (int u = 0; u < total; u++) {
        int64_t index = indices[u];
        index += index < 0 ? extents[AXIS] : 0;
        if (index >= 0 && index < extents[AXIS]) {
            int64_t place = 0;
            for (int d = 0; d < RANK; d++)
                place = place * extents[d] + (d == AXIS ? index : at[d]);
            output[place] = updates[u];
        }
        for (int d = RANK - 1; d >= 0 && ++at[d] == counts[d]; d--)
            at[d] = 0;
    }
}
