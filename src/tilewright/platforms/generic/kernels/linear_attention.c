/* ---
op: LinearAttention
types: {query: T, key: T, value: T, past_state: T, decay: T, beta: T, output: T, present_state: T}
T: [float32, float64]
scratch: "(DK+1)*DV*8"
# States are copied, and for each position decayed, corrected, written and read, in numbers that may be doubles.
cycles:
  read: BATCH * KV * G * (CELLS := SEQ * DK * DV)
  decayed: some(DECAYS) * BATCH * KV * CELLS
  corrected: some(RATES) * BATCH * KV * CELLS
  doubles: several(words(query_bytes)) * BATCH * KV * CELLS * (some(G) + G + some(DECAYS) + some(RATES))
  lines: BATCH * KV * SEQ * DK
  columns: BATCH * KV * SEQ * DV
  states: BATCH * KV * DK * DV
--- */
#include "tilewright_activation.h"

#ifndef TW_GENERATED
typedef float T;
#endif

/* Decays the state, corrects the value by what the state already holds for this key, and writes it. */
static void linear_attention_write(T *state, T *written, const T *k, const T *v, const T *decay, const T *rate, int DK,
                                   int DV, int per_key) {
    for (int i = 0; decay && i < DK; i++) {
        const T factor = TW_EXP(decay[per_key ? i : 0]);
        for (int j = 0; j < DV; j++)
            state[i * DV + j] *= factor;
    }
    memcpy(written, v, (size_t)DV * sizeof *written);
    if (rate) {
        for (int i = 0; i < DK; i++)
            for (int j = 0; j < DV; j++)
                written[j] -= state[i * DV + j] * k[i];
        for (int j = 0; j < DV; j++)
            written[j] *= *rate;
    }
    for (int i = 0; i < DK; i++)
        for (int j = 0; j < DV; j++)
            state[i * DV + j] += k[i] * written[j];
}

static void linear_attention(const T *query, const T *key, const T *value, const T *past_state, const T *decay,
                             const T *beta, T *output, T *present_state, int BATCH, int KV, int G, int SEQ, int DK,
                             int DV, int DECAYS, int RATES, double SCALE, void *scratch) {
    T *state = scratch, *written = state + (ptrdiff_t)DK * DV;
    const size_t bytes = (size_t)DK * (size_t)DV * sizeof *state;
    const T scale = (T)SCALE;
    for (int head = 0; head < BATCH * KV; head++) {
        const int b = head / KV, kv = head % KV;
        for (int i = 0; i < DK * DV; i++)
            state[i] = past_state ? past_state[(ptrdiff_t)head * DK * DV + i] : 0;
        for (int t = 0; t < SEQ; t++) {
            const ptrdiff_t row = (ptrdiff_t)b * SEQ + t;
            const T *gate = decay ? decay + row * DECAYS + kv * (DECAYS / KV) : decay;
            const T *rate = beta ? beta + row * RATES + (RATES > 1 ? kv : 0) : beta;
            linear_attention_write(state, written, key + (row * KV + kv) * DK, value + (row * KV + kv) * DV, gate, rate,
                                   DK, DV, DECAYS > KV);
            for (int g = 0; g < G; g++) {
                const T *q = query + ((row * KV + kv) * G + g) * DK;
                T *restrict y = output + ((row * KV + kv) * G + g) * DV;
                memset(y, 0, (size_t)DV * sizeof *y);
                for (int i = 0; i < DK; i++)
                    for (int j = 0; j < DV; j++)
                        y[j] += q[i] * scale * state[i * DV + j];
            }
        }
        if (present_state)
            memcpy(present_state + (ptrdiff_t)head * DK * DV, state, bytes);
    }
}
