/* ---
op: iSoftmax
types: {x: T, y: int32}
T: [int8, uint8]
epilogue: row
cycles: "2000+OUTER*AXIS*16"
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* e(d) for the 256 possible distances below the maximum: ((A * (p + B)^2 + C) >> z) with d = p - z * log2. */
static void isoftmax_table(int64_t *table, int coeffA, int coeffB, int coeffC, int log2) {
    for (int distance = 0; distance < 256; distance++) {
        const int z = tw_min(distance / log2, 31);
        const int64_t p = (int64_t)z * log2 - distance + coeffB;
        table[distance] = (coeffA * p * p + coeffC) >> z;
    }
}

static void isoftmax(const T *x, void *y, int OUTER, int AXIS, int coeffA, int coeffB, int coeffC, int log2,
                     int n_levels, const struct Epilogue *epilogue) {
    int64_t table[256];
    int32_t out[16];
    isoftmax_table(table, coeffA, coeffB, coeffC, log2);
    for (int outer = 0; outer < OUTER && AXIS > 0; outer++) {
        const ptrdiff_t at = (ptrdiff_t)outer * AXIS;
        int max = x[at];
        int64_t sum = 0;
        for (int i = 1; i < AXIS; i++)
            max = tw_max(max, x[at + i]);
        for (int i = 0; i < AXIS; i++)
            sum += table[max - x[at + i]];
        for (int i = 0; i < AXIS; i += 16) {
            const int count = tw_min(16, AXIS - i);
            for (int j = 0; j < count; j++)
                out[j] = sum ? (int32_t)(table[max - x[at + i + j]] * (n_levels - 1) / sum) : 0;
            STORE_PANEL(epilogue, y, out, at + i, i, count);
        }
    }
}
