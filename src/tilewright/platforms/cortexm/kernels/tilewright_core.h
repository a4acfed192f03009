/* What Cortex-M does in fewer instructions than plain C says. */
#ifndef TILEWRIGHT_CORE_H
#define TILEWRIGHT_CORE_H

#include "tilewright_arm.h"

/* There are no vectors to lose. */
#define TW_ROLLED _Pragma("GCC unroll 4")

/* zero + x * mul / 2^shift rounded, where nothing lies halfway: SMMLA and a shift. */
#define TW_CORE_SCALES
TW_ARM_INLINE int32_t tw_scale_untied(int32_t x, int32_t mul, int shift, int32_t zero) {
    const int rest = shift - 25;
    const int32_t rounding = (int32_t)((uint32_t)zero << rest) + (1 << rest >> 1);
    return tw_upper_product(x, (int32_t)((uint32_t)mul << 7), rounding) >> rest;
}

#endif
