/* ---
op: Attention
types: {Q: T, K: T, V: T, attn_mask: M, past_key: T, past_value: T, nonpad_kv_seqlen: int64, Y: T, present_key: T, present_value: T, qk_matmul_output: T}
T: [float32, float64]
M: [bool, float32, float64]
whole: [BATCH, KV, G, S]
scratch: "L*8"
# Scores one by one, eight products at a time; then powers, and sums of values. Numbers may be doubles.
cycles:
  eights: (SCORES := BATCH * HEADS * S * L) * whole_eights(D)
  single: SCORES * left_of_eights(D)
  sums: SCORES * DV
  scores: SCORES
  masked: some(MASK_L) * SCORES
  capped: some(softcap) * SCORES
  double_products: (DOUBLE := several(words(Q_bytes))) * SCORES * (D + DV)
  double_scores: DOUBLE * SCORES
--- */
#include "tilewright_activation.h"
#include <stdbool.h>

#ifndef TW_GENERATED
typedef float T;
typedef bool M;
#endif

/* Rows of the cache followed by the new ones, densely. */
static void attention_append(const T *past, const T *fresh, T *present, int batches, int heads, int old, int rows,
                             int size, ptrdiff_t fresh_batch, ptrdiff_t fresh_head, ptrdiff_t fresh_row) {
    for (int i = 0; i < batches * heads; i++) {
        if (old)
            memcpy(present, past + (ptrdiff_t)i * old * size, (size_t)old * (size_t)size * sizeof *present);
        present += (ptrdiff_t)old * size;
        for (int row = 0; row < rows; row++, present += size)
            memcpy(present, fresh + i / heads * fresh_batch + i % heads * fresh_head + row * fresh_row,
                   (size_t)size * sizeof *present);
    }
}

/* Turns scores into weights. */
static void attention_softmax(T *score, int count) {
    T top = score[0], sum = 0;
    for (int i = 1; i < count; i++)
        top = score[i] > top ? score[i] : top;
    for (int i = 0; i < count; i++) {
        score[i] = TW_EXP(score[i] - top);
        sum += score[i];
    }
    for (int i = 0; i < count; i++)
        score[i] /= sum;
}

static void attention(const T *Q, const T *K, const T *V, const M *attn_mask, const T *past_key, const T *past_value,
                      const int64_t *nonpad_kv_seqlen, T *Y, T *present_key, T *present_value, T *qk_matmul_output,
                      int BATCH, int KV, int G, int S, int L, int D, int DV, int PAST, double SCALE, double softcap,
                      int is_causal, int qk_matmul_output_mode, int MASK_BATCH, int MASK_HEAD, int MASK_ROW, int MASK_L,
                      int Q_BATCH, int Q_HEAD, int Q_ROW, int K_BATCH, int K_HEAD, int K_ROW, int V_BATCH, int V_HEAD,
                      int V_ROW, int Y_BATCH, int Y_HEAD, int Y_ROW, void *scratch) {
    T *score = scratch;
    const T scale = (T)SCALE, cap = (T)softcap, hidden = (T)-INFINITY;
    if (present_key)
        attention_append(past_key, K, present_key, BATCH, KV, PAST, L - PAST, D, K_BATCH, K_HEAD, K_ROW);
    if (present_value)
        attention_append(past_value, V, present_value, BATCH, KV, PAST, L - PAST, DV, V_BATCH, V_HEAD, V_ROW);
    for (int row = 0; row < BATCH * KV * G * S; row++) {
        const int s = row % S, head = row / S % (KV * G), kv = head / G, b = row / S / (KV * G);
        const T *q = Q + (ptrdiff_t)b * Q_BATCH + (ptrdiff_t)head * Q_HEAD + (ptrdiff_t)s * Q_ROW;
        const T *old_k = past_key ? past_key + (ptrdiff_t)(b * KV + kv) * PAST * D : past_key;
        const T *old_v = past_value ? past_value + (ptrdiff_t)(b * KV + kv) * PAST * DV : past_value;
        const T *new_k = K + (ptrdiff_t)b * K_BATCH + (ptrdiff_t)kv * K_HEAD;
        const T *new_v = V + (ptrdiff_t)b * V_BATCH + (ptrdiff_t)kv * V_HEAD;
        const M *mask =
            attn_mask ? attn_mask + (ptrdiff_t)b * MASK_BATCH + (ptrdiff_t)head * MASK_HEAD + (ptrdiff_t)s * MASK_ROW
                      : attn_mask;
        T *kept = qk_matmul_output ? qk_matmul_output + (ptrdiff_t)row * L : qk_matmul_output;
        T *restrict y = Y + (ptrdiff_t)b * Y_BATCH + (ptrdiff_t)head * Y_HEAD + (ptrdiff_t)s * Y_ROW;
        const int64_t length = nonpad_kv_seqlen ? nonpad_kv_seqlen[b] : L;
        for (int i = 0; i < L; i++) {
            const T *k = i < PAST ? old_k + (ptrdiff_t)i * D : new_k + (ptrdiff_t)(i - PAST) * K_ROW;
            const T raw = TW_INNER(q, k, D) * scale;
            const T capped = cap > 0 ? TW_TANH(raw / cap) * cap : raw;
            score[i] = capped;
            if (mask)
                score[i] += i >= MASK_L ? hidden : sizeof(M) == 1 ? mask[i] != 0 ? 0 : hidden : (T)mask[i];
            if ((is_causal && i > s + PAST) || i >= length)
                score[i] = hidden;
            if (kept)
                kept[i] = qk_matmul_output_mode == 0 ? raw : qk_matmul_output_mode == 1 ? capped : score[i];
        }
        attention_softmax(score, L);
        if (kept && qk_matmul_output_mode == 3)
            memcpy(kept, score, (size_t)L * sizeof *kept);
        memset(y, 0, (size_t)DV * sizeof *y);
        for (int i = 0; i < L; i++) {
            const T *v = i < PAST ? old_v + (ptrdiff_t)i * DV : new_v + (ptrdiff_t)(i - PAST) * V_ROW;
            for (int j = 0; j < DV; j++)
                y[j] += score[i] * v[j];
        }
    }
}
