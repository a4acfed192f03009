/* ---
op: iSoftmax
types: {x: T, y: U}
T: [int8, uint8, int16, uint16, int32]
U: [int8, uint8, int16, uint16, int32]
U: [uint8, uint16]
cycles: "2000+OUTER*AXIS*16"
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
typedef uint8_t U;
#endif

/* (A * (p + B)^2 + C) >> z for an element that lies `distance` = z * log2 - p below the maximum. */
static int64_t isoftmax_power(int64_t distance, int coeffA, int coeffB, int coeffC, int log2) {
    const int64_t halvings = distance / log2, z = halvings < 31 ? halvings : 31;
    const int64_t p = z * log2 - distance + coeffB;
    return (coeffA * p * p + coeffC) >> z;
}

static void isoftmax(const T *x, U *y, int OUTER, int AXIS, int coeffA, int coeffB, int coeffC, int log2,
                     int n_levels) {
    int64_t table[256]; /* bytes have few distances, so all their powers are computed in advance */
    for (int i = 0; i < 256 && sizeof(T) == 1; i++)
        table[i] = isoftmax_power(i, coeffA, coeffB, coeffC, log2);
    for (int outer = 0; outer < OUTER; outer++, x += AXIS, y += AXIS) {
        int64_t max = AXIS > 0 ? x[0] : 0, sum = 0;
        for (int i = 1; i < AXIS; i++)
            max = max > x[i] ? max : x[i];
        for (int i = 0; i < AXIS; i++)
            sum +=
                sizeof(T) == 1 ? table[(max - x[i]) & 255] : isoftmax_power(max - x[i], coeffA, coeffB, coeffC, log2);
        for (int i = 0; i < AXIS; i++) {
            const int64_t power =
                sizeof(T) == 1 ? table[(max - x[i]) & 255] : isoftmax_power(max - x[i], coeffA, coeffB, coeffC, log2);
            y[i] = (U)(sum ? power * (n_levels - 1) / sum : 0);
        }
    }
}
