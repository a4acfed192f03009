/* A sum of ITA scaled back to a byte, rounded half up; the offset comes behind the shift. */
#ifndef TILEWRIGHT_ITA_SCALE_H
#define TILEWRIGHT_ITA_SCALE_H

#include <stdint.h>

static inline int32_t tw_ita_scaled(int32_t sum, int mult, int shift, int add) {
    const int64_t half = shift > 0 ? (int64_t)1 << (shift - 1) : 0;
    const int64_t scaled = (((int64_t)sum * mult + half) >> shift) + add;
    return (int32_t)(scaled < -128 ? -128 : scaled > 127 ? 127 : scaled);
}

#endif
