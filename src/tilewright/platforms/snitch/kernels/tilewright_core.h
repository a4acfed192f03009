/* What these cores do in fewer instructions than plain C. */
#ifndef TILEWRIGHT_CORE_H
#define TILEWRIGHT_CORE_H

#include <stdint.h>

/* Limits of an integer type hold before rounding, too; NaN is below all of them. */
#define TW_CORE_QUANTISES
static inline __attribute__((always_inline)) int32_t tw_quantised(float x, float zero, float lo, float hi) {
    int32_t whole;
    __asm__("fmax.s %1, %1, %2\nfmin.s %1, %1, %3\nfcvt.w.s %0, %1, rne"
            : "=r"(whole), "+&f"(x)
            : "f"(lo - zero), "f"(hi - zero));
    return whole + (int32_t)zero;
}

#endif
