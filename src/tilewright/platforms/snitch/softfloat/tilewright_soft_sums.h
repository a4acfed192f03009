/* Sums of products of floats, for cores without an FPU: a sum is an integer with an exponent, and each product is shifted to
 * where its sum is, so that nothing is rounded or packed in between. The largest product, or partial sum, has at least 26
 * bits, so what is cut off is less than what sums of floats lose. */
#ifndef TILEWRIGHT_SOFT_SUMS_H
#define TILEWRIGHT_SOFT_SUMS_H

#include "tilewright_kernel.h"
#include "tilewright_softfloat.h"

#define TW_SOFT_STEPS 8 /* products below 2^27 that a sum below 2^30 has room for */

/* value * 2^(exponent - 279) */
struct tw_soft_sum {
    int32_t value, exponent;
};

/* The elements that a sum multiplies: `rows` x `columns` runs of `length`. */
struct tw_soft_runs {
    int rows, columns, length;
    ptrdiff_t x_step, x_column, x_row; /* distances of elements */
    ptrdiff_t w_step, w_column, w_row;
    ptrdiff_t w_next; /* of the second sum */
};

static inline float tw_soft_float(struct tw_soft_sum sum) {
    uint32_t x = (uint32_t)sum.value;
    if (!x)
        return 0.0f;
    const uint32_t sign = x & TW_SIGN;
    int32_t exponent = sum.exponent - 122;
    for (x = sign ? 0 - x : x; !(x >> 30); x <<= 1)
        exponent--;
    return tw_float(tw_packed(sign, exponent, x));
}

/* What a sum begins with; the exponent of zero is below all others. */
static inline struct tw_soft_sum tw_soft_start(uint32_t start) {
    const int32_t value = (int32_t)((start << 8 | TW_SIGN) >> 6), exponent = (int32_t)tw_exponent(start) + 127;
    return start << 1 ? (struct tw_soft_sum){start & TW_SIGN ? -value : value, exponent}
                      : (struct tw_soft_sum){0, -0x10000};
}

/* The product of two significands, the first of which has 27 bits. */
TW_INLINE uint32_t tw_soft_product(uint32_t x, uint32_t w) {
    return (uint32_t)((uint64_t)x * (w << 8 | TW_SIGN) >> 32);
}

/* Adds a product with its exponent, and the sign in the first bit of `signs`. */
TW_INLINE struct tw_soft_sum tw_soft_add(struct tw_soft_sum sum, uint32_t product, uint32_t exponents, uint32_t signs) {
    const int32_t exponent = (int32_t)exponents;
    int32_t down = sum.exponent - exponent;
    if (TW_RARELY((uint32_t)down > 31)) {
        if (down < 0) {
            sum.value >>= down < -31 ? 31 : -down;
            sum.exponent = exponent;
            down = 0;
        } else {
            down = 31;
        }
    }
    const int32_t sign = (int32_t)signs >> 31;
    sum.value += ((int32_t)(product >> down) ^ sign) - sign;
    return sum;
}

/* So that there is room for further products. */
TW_INLINE struct tw_soft_sum tw_soft_room(struct tw_soft_sum sum) {
    const int full = (int)(((uint32_t)sum.value ^ (uint32_t)sum.value << 1) >> 31);
    return (struct tw_soft_sum){sum.value >> full, sum.exponent + full};
}

/* Two sums of a run; false where a number is not an ordinary one. */
TW_INLINE int tw_soft_run(const struct tw_soft_runs *runs, const float *x, const float *w, struct tw_soft_sum *one,
                          struct tw_soft_sum *two) {
    struct tw_soft_sum a = *one, b = *two;
    for (int left = runs->length; left > 0; left -= TW_SOFT_STEPS) {
        for (int steps = tw_min(left, TW_SOFT_STEPS); steps > 0; steps--) {
            const uint32_t signs = tw_bits(*x), u = tw_bits(*w), v = tw_bits(w[runs->w_next]);
            const uint32_t p = tw_exponent(signs);
            x += runs->x_step;
            w += runs->w_step;
            if (TW_RARELY(tw_is_special(p))) {
                if (signs << 1 || tw_exponent(u) == 255 || tw_exponent(v) == 255)
                    return 0;
                continue;
            }
            const uint32_t factor = (signs << 8 | TW_SIGN) >> 5, q = tw_exponent(u), r = tw_exponent(v);
            const uint32_t first = tw_soft_product(factor, u), second = tw_soft_product(factor, v);
            if (!TW_RARELY(tw_is_special(q)))
                a = tw_soft_add(a, first, p + q, signs ^ u);
            else if (u << 1)
                return 0;
            if (!TW_RARELY(tw_is_special(r)))
                b = tw_soft_add(b, second, p + r, signs ^ v);
            else if (v << 1)
                return 0;
        }
        a = tw_soft_room(a);
        b = tw_soft_room(b);
    }
    *one = a;
    *two = b;
    return 1;
}

TW_INLINE int tw_soft_all_runs(const struct tw_soft_runs *runs, const float *x, const float *w, float *out) {
    const uint32_t begin[2] = {tw_bits(out[0]), tw_bits(out[1])};
    for (int i = 0; i < 2; i++)
        if (begin[i] << 1 && tw_is_special(tw_exponent(begin[i])))
            return 0;
    struct tw_soft_sum one = tw_soft_start(begin[0]), two = tw_soft_start(begin[1]);
    for (int row = 0; row < runs->rows; row++)
        for (int column = 0; column < runs->columns; column++)
            if (!tw_soft_run(runs, x + row * runs->x_row + column * runs->x_column,
                             w + row * runs->w_row + column * runs->w_column, &one, &two))
                return 0;
    out[0] = tw_soft_float(one);
    out[1] = tw_soft_float(two);
    return 1;
}

/* Adds the products of two sums to what is in `out`: where a number is infinite, NaN or below all ordinary ones, one by one. */
TW_APART void tw_soft_pair(const struct tw_soft_runs *runs, const float *x, const float *w, float *out) {
    if (tw_soft_all_runs(runs, x, w, out))
        return;
    for (int row = 0; row < runs->rows; row++)
        for (int column = 0; column < runs->columns; column++)
            for (int k = 0; k < runs->length; k++) {
                const float factor = x[row * runs->x_row + column * runs->x_column + k * runs->x_step];
                const float *at = w + row * runs->w_row + column * runs->w_column + k * runs->w_step;
                out[0] += factor * at[0];
                out[1] += factor * at[runs->w_next];
            }
}

#endif
