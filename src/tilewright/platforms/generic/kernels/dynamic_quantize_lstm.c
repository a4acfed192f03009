/* ---
op: DynamicQuantizeLSTM
types:
  {X: float32, W: Q, R: Q, B: float32, sequence_lens: int32, initial_h: float32, initial_c: float32, P: float32,
   W_scale: float32, W_zero_point: Q, R_scale: float32, R_zero_point: Q, Y: float32, Y_h: float32, Y_c: float32}
Q: [int8, uint8]
whole: [DIRECTIONS]
scratch: "HIDDEN*(BATCH*9 + 32) + INPUT"
# What is rounded, the products of each unit, and its activations.
cycles:
  ranges: DIRECTIONS * BATCH * SEQ * INPUT
  products: (UNITS := DIRECTIONS * BATCH * SEQ * HIDDEN) * (INPUT + HIDDEN)
  rounded: DIRECTIONS * BATCH * SEQ * (INPUT + HIDDEN)
  units: UNITS
--- */
#include "tilewright_activation.h"

#ifndef TW_GENERATED
typedef int8_t Q;
#endif

/* Scale and zero point of 8 bits for the range of some numbers, zero included. */
static void lstm_range(const float *x, ptrdiff_t size, float *scale, float *zero) {
    float lo = 0.0f, hi = 0.0f;
    for (ptrdiff_t i = 0; i < size; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    *scale = hi > lo ? (hi - lo) / 255.0f : 1.0f;
    *zero = rintf(fminf(-lo / *scale, 255.0f));
}

static void lstm_rounded(const float *x, int size, float scale, float zero, uint8_t *y) {
    for (int i = 0; i < size; i++)
        y[i] = (uint8_t)fminf(fmaxf(rintf(x[i] / scale) + zero, 0.0f), 255.0f);
}

/* Adds the products of a row with the weights, of which four rows are read at a time. */
static void lstm_products(const uint8_t *x, float scale, float zero, const Q *w, const float *w_scale, const Q *w_zero,
                          int scale_step, int zero_step, int depth, int units, uint32_t *total, float *sums) {
    const int middle = (int)zero;
    uint32_t whole = 0;
    memset(total, 0, (size_t)units * sizeof *total);
    for (int k = 0; k < depth; k += 4) {
        int a[4];
        const Q *row[4];
        for (int j = 0; j < 4; j++) {
            a[j] = k + j < depth ? x[k + j] - middle : 0;
            row[j] = w + (ptrdiff_t)(k + j < depth ? k + j : k) * units;
            whole += (uint32_t)a[j];
        }
        for (int i = 0; i < units; i++)
            total[i] += (uint32_t)(a[0] * row[0][i] + a[1] * row[1][i] + a[2] * row[2][i] + a[3] * row[3][i]);
    }
    for (int i = 0; i < units; i++) {
        const int less = w_zero ? w_zero[i * zero_step] : 0;
        sums[i] += (float)(int32_t)(total[i] - whole * (uint32_t)less) * (scale * w_scale[i * scale_step]);
    }
}

static void dynamic_quantize_lstm(const float *X, const Q *W, const Q *R, const float *B, const int32_t *sequence_lens,
                                  const float *initial_h, const float *initial_c, const float *P, const float *W_scale,
                                  const Q *W_zero_point, const float *R_scale, const Q *R_zero_point, float *Y,
                                  float *Y_h, float *Y_c, int DIRECTIONS, int BATCH, int SEQ, int HIDDEN, int INPUT,
                                  int W_scale_COLUMN, int W_scale_WAY, int W_zero_point_COLUMN, int W_zero_point_WAY,
                                  int R_scale_COLUMN, int R_scale_WAY, int R_zero_point_COLUMN, int R_zero_point_WAY,
                                  int layout, int REVERSED, int input_forget, double CLIP, int ACT_0, int ACT_1,
                                  int ACT_2, int ACT_3, int ACT_4, int ACT_5, double ALPHA_0, double ALPHA_1,
                                  double ALPHA_2, double ALPHA_3, double ALPHA_4, double ALPHA_5, double BETA_0,
                                  double BETA_1, double BETA_2, double BETA_3, double BETA_4, double BETA_5,
                                  void *scratch) {
    const int kinds[6] = {ACT_0, ACT_1, ACT_2, ACT_3, ACT_4, ACT_5}, units = 4 * HIDDEN;
    const float alphas[6] = {(float)ALPHA_0, (float)ALPHA_1, (float)ALPHA_2,
                             (float)ALPHA_3, (float)ALPHA_4, (float)ALPHA_5};
    const float betas[6] = {(float)BETA_0, (float)BETA_1, (float)BETA_2, (float)BETA_3, (float)BETA_4, (float)BETA_5};
    const float limit = (float)CLIP;
    float *sums = scratch, *h = sums + units, *c = h + BATCH * HIDDEN;
    uint32_t *total = (uint32_t *)(void *)(c + BATCH * HIDDEN);
    uint8_t *states = (uint8_t *)(total + units), *input = states + BATCH * HIDDEN;
    float x_scale, x_zero;
    lstm_range(X, (ptrdiff_t)SEQ * BATCH * INPUT, &x_scale, &x_zero);
    for (int d = 0; d < DIRECTIONS; d++) {
        const int *kind = kinds + 3 * d;
        const float *alpha = alphas + 3 * d, *beta = betas + 3 * d;
        const float *wb = B ? B + d * 2 * units : B, *p = P ? P + d * 3 * HIDDEN : P;
        for (int b = 0; b < BATCH; b++) {
            const ptrdiff_t state = (ptrdiff_t)(layout ? b * DIRECTIONS + d : d * BATCH + b) * HIDDEN;
            for (int i = 0; i < HIDDEN; i++) {
                h[b * HIDDEN + i] = initial_h ? initial_h[state + i] : 0;
                c[b * HIDDEN + i] = initial_c ? initial_c[state + i] : 0;
            }
        }
        for (int step = 0; step < SEQ; step++) {
            float h_scale, h_zero;
            lstm_range(h, (ptrdiff_t)BATCH * HIDDEN, &h_scale, &h_zero);
            lstm_rounded(h, BATCH * HIDDEN, h_scale, h_zero, states);
            for (int b = 0; b < BATCH; b++) {
                const int length = sequence_lens ? tw_max(0, tw_min(SEQ, sequence_lens[b])) : SEQ;
                const int t = (REVERSED || d) && step < length ? length - 1 - step : step;
                const int place = layout ? (b * SEQ + t) * DIRECTIONS + d : (t * DIRECTIONS + d) * BATCH + b;
                float *y = Y ? Y + (ptrdiff_t)place * HIDDEN : Y;
                float *own = h + b * HIDDEN, *cells = c + b * HIDDEN;
                if (step >= length) {
                    if (y)
                        memset(y, 0, (size_t)HIDDEN * sizeof *y);
                    continue;
                }
                for (int i = 0; i < units; i++)
                    sums[i] = wb ? wb[i] + wb[units + i] : 0;
                lstm_rounded(X + (ptrdiff_t)(layout ? b * SEQ + t : t * BATCH + b) * INPUT, INPUT, x_scale, x_zero,
                             input);
                lstm_products(input, x_scale, x_zero, W + (ptrdiff_t)d * INPUT * units, W_scale + d * W_scale_WAY,
                              W_zero_point ? W_zero_point + d * W_zero_point_WAY : W_zero_point, W_scale_COLUMN,
                              W_zero_point_COLUMN, INPUT, units, total, sums);
                lstm_products(states + b * HIDDEN, h_scale, h_zero, R + (ptrdiff_t)d * HIDDEN * units,
                              R_scale + d * R_scale_WAY,
                              R_zero_point ? R_zero_point + d * R_zero_point_WAY : R_zero_point, R_scale_COLUMN,
                              R_zero_point_COLUMN, HIDDEN, units, total, sums);
                for (int i = 0; i < HIDDEN; i++) {
                    const float in = sums[i] + (p ? p[i] * cells[i] : 0);
                    const float forget = sums[2 * HIDDEN + i] + (p ? p[2 * HIDDEN + i] * cells[i] : 0);
                    const float opened = TW_ACTIVATE(kind[0], TW_LIMIT(in, limit), alpha[0], beta[0]);
                    const float kept =
                        input_forget ? 1 - opened : TW_ACTIVATE(kind[0], TW_LIMIT(forget, limit), alpha[0], beta[0]);
                    const float fresh = TW_ACTIVATE(kind[1], TW_LIMIT(sums[3 * HIDDEN + i], limit), alpha[1], beta[1]);
                    cells[i] = kept * cells[i] + opened * fresh;
                    const float out = sums[HIDDEN + i] + (p ? p[HIDDEN + i] * cells[i] : 0);
                    own[i] = TW_ACTIVATE(kind[0], TW_LIMIT(out, limit), alpha[0], beta[0]) *
                             TW_ACTIVATE(kind[2], cells[i], alpha[2], beta[2]);
                }
                if (y)
                    memcpy(y, own, (size_t)HIDDEN * sizeof *y);
            }
        }
        for (int b = 0; b < BATCH; b++) {
            const ptrdiff_t state = (ptrdiff_t)(layout ? b * DIRECTIONS + d : d * BATCH + b) * HIDDEN;
            if (Y_h)
                memcpy(Y_h + state, h + b * HIDDEN, (size_t)HIDDEN * sizeof *h);
            if (Y_c)
                memcpy(Y_c + state, c + b * HIDDEN, (size_t)HIDDEN * sizeof *c);
        }
    }
}
