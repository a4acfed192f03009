/* ---
op: RNN
types: {X: T, W: T, R: T, B: T, sequence_lens: int32, initial_h: T, Y: T, Y_h: T}
T: [float32, float64]
whole: [DIRECTIONS]
scratch: "HIDDEN*2*8"
# Sums of each unit, eight numbers at a time; then its activations, some of which take powers. Numbers may be doubles.
cycles:
  eights: (UNITS := DIRECTIONS * BATCH * SEQ * HIDDEN) * (whole_eights(INPUT) + whole_eights(HIDDEN))
  single: UNITS * (left_of_eights(INPUT) + left_of_eights(HIDDEN))
  units: UNITS
  curves: CURVES * UNITS
  double_products: (DOUBLE := several(words(X_bytes))) * UNITS * (INPUT + HIDDEN)
  double_units: DOUBLE * UNITS
--- */
#include "tilewright_activation.h"

#ifndef TW_GENERATED
typedef float T;
#endif

static void rnn(const T *X, const T *W, const T *R, const T *B, const int32_t *sequence_lens, const T *initial_h, T *Y,
                T *Y_h, int DIRECTIONS, int BATCH, int SEQ, int HIDDEN, int INPUT, int layout, int REVERSED,
                double CLIP, int ACT_0, int ACT_1, double ALPHA_0, double ALPHA_1, double BETA_0, double BETA_1,
                void *scratch) {
    const T limit = (T)CLIP;
    for (int d = 0; d < DIRECTIONS; d++) {
        const T *w = W + (ptrdiff_t)d * HIDDEN * INPUT, *r = R + (ptrdiff_t)d * HIDDEN * HIDDEN;
        const T *bias = B ? B + d * 2 * HIDDEN : B;
        const int kind = d ? ACT_1 : ACT_0;
        const T alpha = (T)(d ? ALPHA_1 : ALPHA_0), beta = (T)(d ? BETA_1 : BETA_0);
        for (int b = 0; b < BATCH; b++) {
            T *h = scratch, *fresh = h + HIDDEN;
            const ptrdiff_t state = (ptrdiff_t)(layout ? b * DIRECTIONS + d : d * BATCH + b) * HIDDEN;
            const int length = sequence_lens ? tw_max(0, tw_min(SEQ, sequence_lens[b])) : SEQ;
            for (int i = 0; i < HIDDEN; i++)
                h[i] = initial_h ? initial_h[state + i] : 0;
            for (int step = 0; step < SEQ; step++) {
                const int t = (REVERSED || d) && step < length ? length - 1 - step : step;
                const T *x = X + (ptrdiff_t)(layout ? b * SEQ + t : t * BATCH + b) * INPUT;
                const int place = layout ? (b * SEQ + t) * DIRECTIONS + d : (t * DIRECTIONS + d) * BATCH + b;
                T *y = Y ? Y + (ptrdiff_t)place * HIDDEN : Y;
                for (int i = 0; step < length && i < HIDDEN; i++) {
                    const T sum = TW_INNER(x, w + (ptrdiff_t)i * INPUT, INPUT) +
                                  TW_INNER(h, r + (ptrdiff_t)i * HIDDEN, HIDDEN) +
                                  (bias ? bias[i] + bias[HIDDEN + i] : 0);
                    fresh[i] = TW_ACTIVATE(kind, TW_LIMIT(sum, limit), alpha, beta);
                }
                if (step < length) {
                    T *swapped = h;
                    h = fresh;
                    fresh = swapped;
                }
                for (int i = 0; y && i < HIDDEN; i++)
                    y[i] = step < length ? h[i] : 0;
            }
            if (Y_h)
                memcpy(Y_h + state, h, (size_t)HIDDEN * sizeof *h);
        }
    }
}
