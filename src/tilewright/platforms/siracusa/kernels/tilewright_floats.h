/* Floats on cores that share units: tiles with XpulpV2's loops, and what would be a division. Two cores have one unit,
 * which takes an operation a cycle: operations take turns with loads and additions, so that one core has it while the other
 * does something else. */
#ifndef TILEWRIGHT_FLOATS_H
#define TILEWRIGHT_FLOATS_H

#include "tilewright_kernel.h"

#define TW_FLW(to, at, from) "flw " to ", " at "(" from ")\n"
#define TW_FMADD(sum, x, w) "fmadd.s " sum ", " x ", " w ", " sum "\n"
#define TW_MOVE(pointer, by) "addi " pointer ", " pointer ", " by "\n"
#define TW_NEXT_WEIGHTS "add %[w], %[w], %[step]\n"

/* Four rows. Their sums have four registers each, even and odd rows one each for their input, and weights of two inputs in
 * turn four each. B0 to B3 are what is done behind each product. */
#define TW_SUMS_0 "ft0", "ft1", "ft2", "ft3"
#define TW_SUMS_1 "ft4", "ft5", "ft6", "ft7"
#define TW_SUMS_2 "ft8", "ft9", "ft10", "ft11"
#define TW_SUMS_3 "fa4", "fa5", "fa6", "fa7"
#define TW_EVEN_WEIGHTS "fa0", "fa1", "fa2", "fa3"
#define TW_ODD_WEIGHTS "fs2", "fs3", "fs4", "fs5"
#define TW_FLOAT_ROW_OF(x, s0, s1, s2, s3, w0, w1, w2, w3, B0, B1, B2, B3)                                             \
    TW_FMADD(s0, x, w0) B0 TW_FMADD(s1, x, w1)                                                                         \
    B1 TW_FMADD(s2, x, w2)                                                                                             \
    B2 TW_FMADD(s3, x, w3) B3
#define TW_FLOAT_ROW(...) TW_FLOAT_ROW_OF(__VA_ARGS__)
/* Products with an input, `at` bytes behind the pointers, in three rows; its first loads are behind those of the last row
 * with the input before, which come so late that nothing is read that is not there. */
#define TW_FLOAT_THREE_ROWS(at, WEIGHTS, w2, w3, MOVE_0, MOVE_1, MOVE_2, MOVE_3)                                       \
    TW_FLOAT_ROW("fs0", TW_SUMS_0, WEIGHTS, TW_FLW(w2, "8", "%[w]"), TW_FLW(w3, "12", "%[w]"),                         \
                 TW_FLW("fs1", at, "%[a1]"), TW_NEXT_WEIGHTS)                                                          \
    TW_FLOAT_ROW("fs1", TW_SUMS_1, WEIGHTS, TW_FLW("fs0", at, "%[a2]"), MOVE_0, "", MOVE_1)                            \
    TW_FLOAT_ROW("fs0", TW_SUMS_2, WEIGHTS, TW_FLW("fs1", at, "%[a3]"), MOVE_2, "", MOVE_3)
#define TW_FLOAT_LAST_ROW(WEIGHTS, B0, B1, B2) TW_FLOAT_ROW("fs1", TW_SUMS_3, WEIGHTS, B0, B1, B2, "")
#define TW_FLOAT_MOVED_ROWS(at, by)                                                                                    \
    TW_FLOAT_THREE_ROWS(at, TW_ODD_WEIGHTS, "fs4", "fs5", TW_MOVE("%[a0]", by), TW_MOVE("%[a1]", by),                  \
                        TW_MOVE("%[a2]", by), TW_MOVE("%[a3]", by))
#define TW_FLOAT_ONE_INPUT                                                                                             \
    TW_FLOAT_LAST_ROW(TW_ODD_WEIGHTS, TW_FLW("fs0", "0", "%[a0]"), TW_FLW("fs2", "0", "%[w]"),                         \
                      TW_FLW("fs3", "4", "%[w]"))                                                                      \
    TW_FLOAT_MOVED_ROWS("0", "4")
#define TW_FLOAT_TWO_INPUTS                                                                                            \
    TW_FLOAT_LAST_ROW(TW_ODD_WEIGHTS, TW_FLW("fs0", "0", "%[a0]"), TW_FLW("fa0", "0", "%[w]"),                         \
                      TW_FLW("fa1", "4", "%[w]"))                                                                      \
    TW_FLOAT_THREE_ROWS("0", TW_EVEN_WEIGHTS, "fa2", "fa3", "", "", "", "")                                            \
    TW_FLOAT_LAST_ROW(TW_EVEN_WEIGHTS, TW_FLW("fs2", "0", "%[w]"), TW_FLW("fs3", "4", "%[w]"),                         \
                      TW_FLW("fs0", "4", "%[a0]"))                                                                     \
    TW_FLOAT_MOVED_ROWS("4", "8")
/* Before the first input, the last row has an input of zeros. */
#define TW_NO_INPUT "fmv.w.x fs1, x0\nfmv.w.x fs2, x0\nfmv.w.x fs3, x0\nfmv.w.x fs4, x0\nfmv.w.x fs5, x0\n"
#define TW_SAME_BIASES(s0, s1, s2, s3)                                                                                 \
    TW_FLW(s0, "0", "%[bias]")                                                                                         \
    TW_FLW(s1, "4", "%[bias]") TW_FLW(s2, "8", "%[bias]") TW_FLW(s3, "12", "%[bias]")
#define TW_FSW_4(s0, s1, s2, s3, at_0, at_1, at_2, at_3)                                                               \
    "fsw " s0 ", " at_0 "(%[out])\nfsw " s1 ", " at_1 "(%[out])\nfsw " s2 ", " at_2 "(%[out])\nfsw " s3 ", " at_3      \
    "(%[out])\n"

/* Runs of `words` numbers each, and bytes from the end of one to the next one. Weights that have no part in them, and are
 * passed over, lie between those of two runs and between those of four columns and the next four. */
struct tw_float_lines {
    const float *a[4];
    int words, rows, step[4], w_step_run, w_step_fours;
};

/* out[i * 16 + j] = bias[j] + the products of all runs of row i with column j, for four rows and `fours` times four columns.
 * Weights of four columns lie side by side, those of the next input `w_step` numbers further on, and those of the next four
 * columns behind the last ones. */
TW_APART void tw_float_tiles(const struct tw_float_lines *runs, int fours, const float *w, ptrdiff_t w_step,
                             const float *bias, float *out) {
    for (; fours > 0; fours--, bias += 4, out += 4) {
        const float *a0 = runs->a[0], *a1 = runs->a[1], *a2 = runs->a[2], *a3 = runs->a[3];
        int rows = runs->rows, jump;
        __asm__ volatile(
            ".option push\n.option norvc\n.balign 4\n" TW_NO_INPUT TW_SAME_BIASES("ft0", "ft1", "ft2", "ft3")
                TW_SAME_BIASES("ft4", "ft5", "ft6", "ft7") TW_SAME_BIASES("ft8", "ft9", "ft10", "ft11")
                    TW_SAME_BIASES("fa4", "fa5", "fa6", "fa7") "1: beqz %[pairs], 2f\n" TW_REPEAT("%[pairs]", "108")
                        TW_FLOAT_TWO_INPUTS
            "2: beqz %[odd], 3f\n" TW_FLOAT_ONE_INPUT "3: addi %[rows], %[rows], -1\nbeqz %[rows], 4f\n"
            "lw %[jump], %[steps](%[runs])\nadd %[a0], %[a0], %[jump]\n"
            "lw %[jump], %[steps]+4(%[runs])\nadd %[a1], %[a1], %[jump]\n"
            "lw %[jump], %[steps]+8(%[runs])\nadd %[a2], %[a2], %[jump]\n"
            "lw %[jump], %[steps]+12(%[runs])\nadd %[a3], %[a3], %[jump]\n"
            "lw %[jump], %[steps]+16(%[runs])\nadd %[w], %[w], %[jump]\nj 1b\n"
            "4: lw %[jump], %[steps]+20(%[runs])\nadd %[w], %[w], %[jump]\n" TW_FLOAT_LAST_ROW(
                TW_ODD_WEIGHTS, "", "", "") TW_FSW_4("ft0", "ft1", "ft2", "ft3", "0", "4", "8", "12")
                TW_FSW_4("ft4", "ft5", "ft6", "ft7", "64", "68", "72", "76")
                    TW_FSW_4("ft8", "ft9", "ft10", "ft11", "128", "132", "136", "140")
                        TW_FSW_4("fa4", "fa5", "fa6", "fa7", "192", "196", "200", "204") ".option pop\n"
            : [a0] "+&r"(a0), [a1] "+&r"(a1), [a2] "+&r"(a2), [a3] "+&r"(a3), [w] "+&r"(w), [rows] "+&r"(rows),
              [jump] "=&r"(jump)
            : [step] "r"(w_step * 4), [pairs] "r"(runs->words >> 1), [odd] "r"(runs->words & 1), [bias] "r"(bias),
              [out] "r"(out), [runs] "r"(runs), [steps] "i"(offsetof(struct tw_float_lines, step))
            : "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "ft8", "ft9", "ft10", "ft11", "fa0", "fa1", "fa2",
              "fa3", "fa4", "fa5", "fa6", "fa7", "fs0", "fs1", "fs2", "fs3", "fs4", "fs5", "memory");
    }
}

/* The same for row i alone. */
TW_APART void tw_float_line(const struct tw_float_lines *runs, int i, int fours, const float *w, ptrdiff_t w_step,
                            const float *bias, float *out) {
    for (; fours > 0; fours--, bias += 4, out += 4) {
        const float *a = runs->a[i];
        float s0 = bias[0], s1 = bias[1], s2 = bias[2], s3 = bias[3], x0, x1, w0, w1, w2, w3;
        for (int row = 0; row < runs->rows; row++, a += runs->step[i] / 4, w += runs->w_step_run / 4) {
            if (runs->words > 1)
                __asm__ volatile(
                    ".option push\n.option norvc\n.balign 4\n" TW_REPEAT("%[pairs]", "42") TW_FLW("%[x0]", "0", "%[a]")
                        TW_FLW("%[w0]", "0", "%[w]") TW_FLW("%[w1]", "4", "%[w]") TW_FMADD("%[s0]", "%[x0]", "%[w0]")
                            TW_FLW("%[w2]", "8", "%[w]") TW_FMADD("%[s1]", "%[x0]", "%[w1]") TW_FLW(
                                "%[w3]", "12", "%[w]") TW_FMADD("%[s2]", "%[x0]", "%[w2]") TW_FLW("%[x1]", "4", "%[a]")
                                TW_NEXT_WEIGHTS TW_FMADD("%[s3]", "%[x0]", "%[w3]") TW_FLW("%[w0]", "0", "%[w]")
                                    TW_FLW("%[w1]", "4", "%[w]") TW_FMADD("%[s0]", "%[x1]", "%[w0]")
                                        TW_FLW("%[w2]", "8", "%[w]") TW_FMADD("%[s1]", "%[x1]", "%[w1]")
                                            TW_FLW("%[w3]", "12", "%[w]") TW_FMADD("%[s2]", "%[x1]", "%[w2]")
                                                TW_MOVE("%[a]", "8")
                                                    TW_NEXT_WEIGHTS TW_FMADD("%[s3]", "%[x1]", "%[w3]") ".option pop\n"
                    : [s0] "+f"(s0), [s1] "+f"(s1), [s2] "+f"(s2), [s3] "+f"(s3), [x0] "=&f"(x0), [x1] "=&f"(x1),
                      [w0] "=&f"(w0), [w1] "=&f"(w1), [w2] "=&f"(w2), [w3] "=&f"(w3), [a] "+&r"(a), [w] "+&r"(w)
                    : [step] "r"(w_step * 4), [pairs] "r"(runs->words >> 1)
                    : "memory");
            if (runs->words & 1) {
                s0 = __builtin_fmaf(*a, w[0], s0), s1 = __builtin_fmaf(*a, w[1], s1);
                s2 = __builtin_fmaf(*a, w[2], s2), s3 = __builtin_fmaf(*a, w[3], s3);
                a++, w += w_step;
            }
        }
        w += (runs->w_step_fours - runs->w_step_run) / 4;
        out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3;
    }
}

/* Biases of up to 16 columns from `first` on, as many fours as there are: where they lie, or in `panel`, which has zeros. */
TW_INLINE const float *tw_float_biases(const float *bias, int first, int count, float *panel) {
    if (bias && count % 4 == 0)
        return bias + first;
    if (bias)
        memcpy(panel, bias + first, (size_t)count * sizeof *panel);
    return panel;
}

/* Four rows together, fewer one by one. */
TW_INLINE void tw_float_runs(const struct tw_float_lines *runs, int rows, int fours, const float *w, ptrdiff_t w_step,
                             const float *bias, float *out) {
    if (rows == 4) {
        tw_float_tiles(runs, fours, w, w_step, bias, out);
        return;
    }
    TW_UNROLL_BY(1)
    for (int i = 0; i < rows; i++)
        tw_float_line(runs, i, fours, w, w_step, bias, out + i * 16);
}

/* 1 / b. Cores wait for the one divider, so from 1 to 2^100 it is made of products: bits taken away from a constant are
 * within an eighth of it, and each step doubles the digits. All of float32 is within half a unit and a hair. */
TW_INLINE float tw_reciprocal(float b) {
    const uint32_t bits = tw_bits(b);
    float r = tw_float(0x7EF311C7u - bits);
    TW_UNROLL for (int i = 0; i < 3; i++) r = __builtin_fmaf(__builtin_fmaf(-b, r, 1.0f), r, r);
    return bits - 0x3F800000u <= 0x32000000u ? r : 1.0f / b;
}
TW_INLINE float tw_core_sigmoidf(float x) { return tw_reciprocal(1.0f + tw_expf(-x)); }
#define tw_sigmoidf tw_core_sigmoidf

#endif
