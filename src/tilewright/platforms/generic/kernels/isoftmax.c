/* ---
op: iSoftmax
types: {x: T, y: U}
T: [int8, uint8]
U: [uint8, uint16]
cycles: "2000+OUTER*AXIS*16"
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef uint8_t U;
#endif

/* e(d) for the 256 possible distances below the maximum: ((A * (p + B)^2 + C) >> z) with d = p - z * log2. */
static void isoftmax_table(int64_t *table, int coeffA, int coeffB, int coeffC, int log2) {
    for (int distance = 0; distance < 256; distance++) {
        const int z = tw_min(distance / log2, 31);
        const uint64_t p = (uint64_t)((int64_t)z * log2 - distance + coeffB); /* unsigned, because it may wrap */
        table[distance] = (int64_t)((uint64_t)coeffA * p * p + (uint64_t)coeffC) >> z;
    }
}

static void isoftmax(const T *x, U *y, int OUTER, int AXIS, int coeffA, int coeffB, int coeffC, int log2,
                     int n_levels) {
    int64_t table[256];
    isoftmax_table(table, coeffA, coeffB, coeffC, log2);
    for (int outer = 0; outer < OUTER && AXIS > 0; outer++, x += AXIS, y += AXIS) {
        int max = x[0];
        int64_t sum = 0;
        for (int i = 1; i < AXIS; i++)
            max = tw_max(max, x[i]);
        for (int i = 0; i < AXIS; i++)
            sum += table[max - x[i]];
        for (int i = 0; i < AXIS; i++)
            y[i] = (U)(sum ? table[max - x[i]] * (n_levels - 1) / sum : 0);
    }
}
