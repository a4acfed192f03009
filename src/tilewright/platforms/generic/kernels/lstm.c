/* ---
op: LSTM
types: {X: T, W: T, R: T, B: T, sequence_lens: int32, initial_h: T, initial_c: T, P: T, Y: T, Y_h: T, Y_c: T}
T: [float32, float64]
whole: [DIRECTIONS]
scratch: "HIDDEN*6*8"
# Sums of each unit, eight numbers at a time; then its activations. Numbers may be doubles.
cycles:
  eights: (UNITS := DIRECTIONS * BATCH * SEQ * HIDDEN) * (whole_eights(INPUT) + whole_eights(HIDDEN))
  single: UNITS * (left_of_eights(INPUT) + left_of_eights(HIDDEN))
  units: UNITS
  double_products: (DOUBLE := several(words(X_bytes))) * UNITS * (INPUT + HIDDEN)
  double_units: DOUBLE * UNITS
--- */
#include "tilewright_activation.h"

#ifndef TW_GENERATED
typedef float T;
#endif

/* Sums of one gate from input and state, before peepholes and activation. */
static void lstm_sums(const T *x, const T *h, const T *w, const T *r, const T *wb, const T *rb, int inputs, int hidden,
                      T *sums) {
    for (int i = 0; i < 4 * hidden; i++)
        sums[i] = TW_INNER(x, w + (ptrdiff_t)i * inputs, inputs) + TW_INNER(h, r + (ptrdiff_t)i * hidden, hidden) +
                  (wb ? wb[i] + rb[i] : 0);
}

static void lstm(const T *X, const T *W, const T *R, const T *B, const int32_t *sequence_lens, const T *initial_h,
                 const T *initial_c, const T *P, T *Y, T *Y_h, T *Y_c, int DIRECTIONS, int BATCH, int SEQ, int HIDDEN,
                 int INPUT, int layout, int REVERSED, int input_forget, double CLIP, int ACT_0, int ACT_1, int ACT_2,
                 int ACT_3, int ACT_4, int ACT_5, double ALPHA_0, double ALPHA_1, double ALPHA_2, double ALPHA_3,
                 double ALPHA_4, double ALPHA_5, double BETA_0, double BETA_1, double BETA_2, double BETA_3,
                 double BETA_4, double BETA_5, void *scratch) {
    const int kinds[6] = {ACT_0, ACT_1, ACT_2, ACT_3, ACT_4, ACT_5};
    const T alphas[6] = {(T)ALPHA_0, (T)ALPHA_1, (T)ALPHA_2, (T)ALPHA_3, (T)ALPHA_4, (T)ALPHA_5};
    const T betas[6] = {(T)BETA_0, (T)BETA_1, (T)BETA_2, (T)BETA_3, (T)BETA_4, (T)BETA_5};
    const T limit = (T)CLIP;
    T *sums = scratch, *h = sums + 4 * HIDDEN, *c = h + HIDDEN;
    for (int d = 0; d < DIRECTIONS; d++) {
        const int *kind = kinds + 3 * d;
        const T *alpha = alphas + 3 * d, *beta = betas + 3 * d;
        const T *w = W + (ptrdiff_t)d * 4 * HIDDEN * INPUT, *r = R + (ptrdiff_t)d * 4 * HIDDEN * HIDDEN;
        const T *wb = B ? B + d * 8 * HIDDEN : B, *p = P ? P + d * 3 * HIDDEN : P;
        for (int b = 0; b < BATCH; b++) {
            const ptrdiff_t state = (ptrdiff_t)(layout ? b * DIRECTIONS + d : d * BATCH + b) * HIDDEN;
            const int length = sequence_lens ? tw_max(0, tw_min(SEQ, sequence_lens[b])) : SEQ;
            for (int i = 0; i < HIDDEN; i++) {
                h[i] = initial_h ? initial_h[state + i] : 0;
                c[i] = initial_c ? initial_c[state + i] : 0;
            }
            for (int step = 0; step < SEQ; step++) {
                const int t = (REVERSED || d) && step < length ? length - 1 - step : step;
                const T *x = X + (ptrdiff_t)(layout ? b * SEQ + t : t * BATCH + b) * INPUT;
                const int place = layout ? (b * SEQ + t) * DIRECTIONS + d : (t * DIRECTIONS + d) * BATCH + b;
                T *y = Y ? Y + (ptrdiff_t)place * HIDDEN : Y;
                if (step >= length) {
                    if (y)
                        memset(y, 0, (size_t)HIDDEN * sizeof *y);
                    continue;
                }
                lstm_sums(x, h, w, r, wb, B ? wb + 4 * HIDDEN : B, INPUT, HIDDEN, sums);
                for (int i = 0; i < HIDDEN; i++) {
                    const T in = sums[i] + (p ? p[i] * c[i] : 0);
                    const T forget = sums[2 * HIDDEN + i] + (p ? p[2 * HIDDEN + i] * c[i] : 0);
                    const T cell = sums[3 * HIDDEN + i];
                    const T opened = TW_ACTIVATE(kind[0], TW_LIMIT(in, limit), alpha[0], beta[0]);
                    const T kept =
                        input_forget ? 1 - opened : TW_ACTIVATE(kind[0], TW_LIMIT(forget, limit), alpha[0], beta[0]);
                    c[i] = kept * c[i] + opened * TW_ACTIVATE(kind[1], TW_LIMIT(cell, limit), alpha[1], beta[1]);
                    const T out = sums[HIDDEN + i] + (p ? p[HIDDEN + i] * c[i] : 0);
                    h[i] = TW_ACTIVATE(kind[0], TW_LIMIT(out, limit), alpha[0], beta[0]) *
                           TW_ACTIVATE(kind[2], c[i], alpha[2], beta[2]);
                }
                if (y)
                    memcpy(y, h, (size_t)HIDDEN * sizeof *y);
            }
            if (Y_h)
                memcpy(Y_h + state, h, (size_t)HIDDEN * sizeof *h);
            if (Y_c)
                memcpy(Y_c + state, c, (size_t)HIDDEN * sizeof *c);
        }
    }
}
