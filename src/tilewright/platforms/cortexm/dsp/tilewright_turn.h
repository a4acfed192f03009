/* Rows of bytes become columns, four by four. */
#ifndef TILEWRIGHT_TURN_H
#define TILEWRIGHT_TURN_H

#include "tilewright_kernel.h"

/* y[j * y_row + k] = x[k * x_row + j] for j < columns and k < rows. */
TW_APART void tw_turn_bytes(const void *from, ptrdiff_t x_row, void *to, ptrdiff_t y_row, int columns, int rows) {
    const char *column = from;
    char *row = to;
    for (; columns >= 4; columns -= 4, column += 4, row += 4 * y_row) {
        const char *x = column;
        char *y = row;
        int k = 0;
        for (; k + 4 <= rows; k += 4, x += 4 * x_row, y += 4) {
            const uint32_t a = tw_load_word(x), b = tw_load_word(x + x_row);
            const uint32_t c = tw_load_word(x + 2 * x_row), d = tw_load_word(x + 3 * x_row);
            const uint32_t even = tw_even_u8(a) | tw_even_u8(b) << 8, more_even = tw_even_u8(c) | tw_even_u8(d) << 8;
            const uint32_t odd = tw_odd_u8(a) | tw_odd_u8(b) << 8, more_odd = tw_odd_u8(c) | tw_odd_u8(d) << 8;
            tw_store_word(y, tw_low_halves(even, more_even));
            tw_store_word(y + y_row, tw_low_halves(odd, more_odd));
            tw_store_word(y + 2 * y_row, tw_high_halves(even, more_even));
            tw_store_word(y + 3 * y_row, tw_high_halves(odd, more_odd));
        }
        for (; k < rows; k++, x += x_row, y++) {
            y[0] = x[0];
            y[y_row] = x[1];
            y[2 * y_row] = x[2];
            y[3 * y_row] = x[3];
        }
    }
    for (; columns > 0; columns--, column++, row += y_row) {
        const char *x = column;
        for (int k = 0; k < rows; k++, x += x_row)
            row[k] = *x;
    }
}

#endif
