/* ---
op: ScatterND
types: {data: T, indices: [int64], updates: T, output: T}
T: [float32, float64, float16, bfloat16, int8, uint8, int16, uint16, int32, uint32, int64, uint64, bool]
when: {REDUCTION: "== 0", RANK: "<= 8"}
# All is copied, then places of updates are found axis by axis, and elements or runs of them copied.
cycles:
  copied: words(SIZE * data_bytes)
  places: UPDATES * DEPTH
  runs: several(INNER) * UPDATES
  moved: several(INNER) * UPDATES * words(INNER * data_bytes)
  call: 1
--- */
#include "tilewright_kernel.h"

/* A copy of the data, then one run of INNER elements for each update; an index outside the data changes nothing. */
static void scatter_nd(const T *data, const int64_t *indices, const T *updates, T *output, int SIZE, int UPDATES,
                       int INNER, int DEPTH, int DATA0, int DATA1, int DATA2, int DATA3, int DATA4, int DATA5,
                       int DATA6, int DATA7) {
    const int extents[8] = {DATA0, DATA1, DATA2, DATA3, DATA4, DATA5, DATA6, DATA7};
    if (output != data)
        memcpy(output, data, (size_t)SIZE * sizeof(T));
    for (int u = 0; u < UPDATES; u++) {
        int64_t place = 0;
        int inside = 1;
        for (int d = 0; d < DEPTH; d++) {
            int64_t index = indices[u * DEPTH + d];
            index += index < 0 ? extents[d] : 0;
            inside = inside && index >= 0 && index < extents[d];
            place = inside ? place * extents[d] + index : 0;
        }
        if (inside && INNER == 1)
            output[place] = updates[u];
        else if (inside)
            memcpy(output + place * INNER, updates + u * INNER, (size_t)INNER * sizeof(T));
    }
}
