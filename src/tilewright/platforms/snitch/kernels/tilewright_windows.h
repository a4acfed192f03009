/* Windows of an image, sixteen channels at a time in pairs: what pools have in common. */
#ifndef TILEWRIGHT_WINDOWS_H
#define TILEWRIGHT_WINDOWS_H

#include "tilewright_streams.h"

/* vfadd.s, vfmax.s, vfmul.s: of sums with ft11, or with the stream. */
#define TW_FIRST_ADDED(d) ".insn r 0x33, 0, 0x41, " d ", ft0, ft11\n"
#define TW_ADDED(d) ".insn r 0x33, 0, 0x41, " d ", " d ", ft0\n"
#define TW_FIRST_MAXIMUM(d) ".insn r 0x33, 0, 0x46, " d ", ft0, ft11\n"
#define TW_MAXIMUM(d) ".insn r 0x33, 0, 0x46, " d ", " d ", ft0\n"
#define TW_SCALED(d) ".insn r 0x33, 0, 0x43, " d ", " d ", ft10\n"

/* Goes through all windows. FIRST begins eight sums with `start`, NEXT goes on with them, and at the end END changes them,
 * where `factor` is in ft10; the factor of a window with so many taps is FACTOR. Channels that are no sixteen are computed
 * together with some of those before. */
#define TW_WINDOWS(FIRST, NEXT, END, start, FACTOR, X, Y, epilogue)                                                    \
    do {                                                                                                               \
        const int column_ = X_s2 * dilations_1 * 4, row_ = X_s1 * dilations_0 * 4;                                     \
        float out_[16] __attribute__((aligned(8)));                                                                    \
        TW_STREAM_TIMES(0, 1);                                                                                         \
        TW_STREAM_LOOP(0, 0, 8, 8);                                                                                    \
        for (int n_ = 0; n_ < N; n_++)                                                                                 \
            for (int oh_ = 0; oh_ < OH; oh_++) {                                                                       \
                const int ih = oh_ * strides_0 - pads_0;                                                               \
                const struct tw_span kh = tw_inside(ih, X_n1, KH, dilations_0);                                        \
                for (int ow_ = 0; ow_ < OW; ow_++) {                                                                   \
                    const int iw = ow_ * strides_1 - pads_1;                                                           \
                    const struct tw_span kw = tw_inside(iw, X_n2, KW, dilations_1);                                    \
                    const int rows = kh.end - kh.begin, columns = kw.end - kw.begin;                                   \
                    const float factor_ = (FACTOR);                                                                    \
                    const float *const x_ =                                                                            \
                        (X) + n_ * X_s0 + (ih + kh.begin * dilations_0) * X_s1 + (iw + kw.begin * dilations_1) * X_s2; \
                    TW_STREAM_LOOP(0, 1, columns, column_ - 56);                                                       \
                    TW_STREAM_LOOP(0, 2, rows, row_ - (columns - 1) * column_ - 56);                                   \
                    for (int next_ = 0; next_ < C; next_ += 16) {                                                      \
                        const int c_ = tw_min(next_, C - 16), left_ = next_ - c_;                                      \
                        const int at_ = n_ * Y_s0 + oh_ * Y_s1 + ow_ * Y_s2 + next_;                                   \
                        TW_STREAM_READ(0, 3, x_ + c_);                                                                 \
                        __asm__ volatile(".insn r 0x33, 0, 0x58, ft11, %[begin], %[begin]\n"                           \
                                         ".insn r 0x33, 0, 0x58, ft10, %[factor], %[factor]\n" TW_STREAMS_ON TW_EIGHT( \
                                             FIRST) "bltz %[more], 2f\n" TW_FREP_8("%[more]")                          \
                                             TW_EIGHT(NEXT) "2:\n" TW_STREAMS_OFF END TW_SUMS_AT("fsd", "8", "%[out]") \
                                         :                                                                             \
                                         : [more] "r"(rows * columns - 2), [begin] "f"(start), [factor] "f"(factor_),  \
                                           [out] "r"(out_)                                                             \
                                         : TW_EIGHT_SUMS, TW_STREAM_REGISTERS, "ft10", "ft11", "memory");              \
                        STORE(epilogue, Y, out_ + left_, at_, 0, next_, 1, 16 - left_);                                \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
    } while (0)

#endif
