/* ---
op: GRU
types: {X: T, W: T, R: T, B: T, sequence_lens: int32, initial_h: T, Y: T, Y_h: T}
T: [float32, float64]
whole: [DIRECTIONS]
scratch: "HIDDEN*4*8"
# Sums of each unit, eight numbers at a time; then its activations. Numbers may be doubles.
cycles:
  eights: (UNITS := DIRECTIONS * BATCH * SEQ * HIDDEN) * (whole_eights(INPUT) + whole_eights(HIDDEN))
  single: UNITS * (left_of_eights(INPUT) + left_of_eights(HIDDEN))
  units: UNITS
  double_products: (DOUBLE := several(words(X_bytes))) * UNITS * (INPUT + HIDDEN)
  double_units: DOUBLE * UNITS
  call: 1
--- */
#include "tilewright_activation.h"

#ifndef TW_GENERATED
typedef float T;
#endif

/* One step of the state `h`; `zr` holds both gates and then the reset state. */
static void gru_step(const T *x, T *h, const T *w, const T *r, const T *bias, int inputs, int hidden, int linear,
                     T limit, const int *kind, const T *alpha, const T *beta, T *zr, T *fresh) {
    const T *recurrent = bias ? bias + 3 * hidden : bias;
    for (int i = 0; i < 2 * hidden; i++) {
        const T sum = TW_INNER(x, w + (ptrdiff_t)i * inputs, inputs) + TW_INNER(h, r + (ptrdiff_t)i * hidden, hidden) +
                      (bias ? bias[i] + recurrent[i] : 0);
        zr[i] = TW_ACTIVATE(kind[0], TW_LIMIT(sum, limit), alpha[0], beta[0]);
    }
    T *reset = zr + hidden;
    if (!linear)
        for (int i = 0; i < hidden; i++)
            reset[i] *= h[i];
    for (int i = 0; i < hidden; i++) {
        const int row = 2 * hidden + i;
        const T from_state =
            TW_INNER(linear ? h : reset, r + (ptrdiff_t)row * hidden, hidden) + (bias ? recurrent[row] : 0);
        const T sum = TW_INNER(x, w + (ptrdiff_t)row * inputs, inputs) + (bias ? bias[row] : 0) +
                      (linear ? reset[i] * from_state : from_state);
        fresh[i] = TW_ACTIVATE(kind[1], TW_LIMIT(sum, limit), alpha[1], beta[1]);
    }
    for (int i = 0; i < hidden; i++)
        h[i] = (1 - zr[i]) * fresh[i] + zr[i] * h[i];
}

static void gru(const T *X, const T *W, const T *R, const T *B, const int32_t *sequence_lens, const T *initial_h, T *Y,
                T *Y_h, int DIRECTIONS, int BATCH, int SEQ, int HIDDEN, int INPUT, int layout, int REVERSED,
                int linear_before_reset, double CLIP, int ACT_0, int ACT_1, int ACT_2, int ACT_3, double ALPHA_0,
                double ALPHA_1, double ALPHA_2, double ALPHA_3, double BETA_0, double BETA_1, double BETA_2,
                double BETA_3, void *scratch) {
    const int kinds[4] = {ACT_0, ACT_1, ACT_2, ACT_3};
    const T alphas[4] = {(T)ALPHA_0, (T)ALPHA_1, (T)ALPHA_2, (T)ALPHA_3};
    const T betas[4] = {(T)BETA_0, (T)BETA_1, (T)BETA_2, (T)BETA_3};
    T *zr = scratch, *fresh = zr + 2 * HIDDEN, *h = fresh + HIDDEN;
    for (int d = 0; d < DIRECTIONS; d++) {
        const T *w = W + (ptrdiff_t)d * 3 * HIDDEN * INPUT, *r = R + (ptrdiff_t)d * 3 * HIDDEN * HIDDEN;
        const T *bias = B ? B + d * 6 * HIDDEN : B;
        for (int b = 0; b < BATCH; b++) {
            const ptrdiff_t state = (ptrdiff_t)(layout ? b * DIRECTIONS + d : d * BATCH + b) * HIDDEN;
            const int length = sequence_lens ? tw_max(0, tw_min(SEQ, sequence_lens[b])) : SEQ;
            for (int i = 0; i < HIDDEN; i++)
                h[i] = initial_h ? initial_h[state + i] : 0;
            for (int step = 0; step < SEQ; step++) {
                const int t = (REVERSED || d) && step < length ? length - 1 - step : step;
                const T *x = X + (ptrdiff_t)(layout ? b * SEQ + t : t * BATCH + b) * INPUT;
                const int place = layout ? (b * SEQ + t) * DIRECTIONS + d : (t * DIRECTIONS + d) * BATCH + b;
                T *y = Y ? Y + (ptrdiff_t)place * HIDDEN : Y;
                if (step < length)
                    gru_step(x, h, w, r, bias, INPUT, HIDDEN, linear_before_reset, (T)CLIP, kinds + 2 * d,
                             alphas + 2 * d, betas + 2 * d, zr, fresh);
                for (int i = 0; y && i < HIDDEN; i++)
                    y[i] = step < length ? h[i] : 0;
            }
            if (Y_h)
                memcpy(Y_h + state, h, (size_t)HIDDEN * sizeof *h);
        }
    }
}
