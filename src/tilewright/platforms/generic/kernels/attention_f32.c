/* ---
op: Attention
types: {Q: float32, K: float32, V: float32, attn_mask: float32, Y: float32}
when: {PAST: "== 0", softcap: "== 0", L: ">= 1", MASK_L: "MASK_L == 0 or MASK_L == L"}
whole: [S]
scratch: "((L+15)//16*16*(D+4) + (DV+15)//16*16*L)*4"
# Zeros for both panels, which keys and values then fill; products of four rows by four columns, or of single rows; powers.
cycles:
  zeros: sixteens(L) * D + sixteens(DV) * L
  keys: BATCH * KV * L * D
  values: BATCH * KV * L * sixteens(DV)
  products: BATCH * HEADS * (QUADS := whole_fours(S)) * (PANELS := fours(L) * D + fours(DV) * L)
  single: BATCH * HEADS * left_of_fours(S) * PANELS
  tiles: BATCH * HEADS * (QUADS + left_of_fours(S)) * (fours(L) + fours(DV))
  powers: BATCH * HEADS * S * L
  rows: BATCH * HEADS * S
--- */
#include "tilewright_tile.h"

/* Keys as panels of 16 positions, scaled, and values as panels of 16 columns. */
static void attention_f32_pack(const float *K, ptrdiff_t k_row, int D, const float *V, ptrdiff_t v_row, int DV, int L,
                               float scale, float *keys, float *values) {
    for (int l = 0; l < L; l++) {
        for (int d = 0; d < D; d++)
            keys[((ptrdiff_t)(l & ~15) * D) + d * 16 + (l & 15)] = K[l * k_row + d] * scale;
        for (int n = 0; n < DV; n += 16)
            memcpy(values + (ptrdiff_t)n * L + l * 16, V + l * v_row + n, (size_t)tw_min(16, DV - n) * sizeof *V);
    }
}

/* Turns a row of scores into powers and returns the reciprocal of their sum. */
static float attention_f32_powers(float *row, int L, const float *mask, int visible) {
    if (mask) {
        for (int l = 0; l < L; l++)
            row[l] += mask[l];
    }
    for (int l = visible; l < L; l++)
        row[l] = -INFINITY;
    const float max = tw_max_f32(row, L);
    for (int l = 0; l < L; l++)
        row[l] = tw_expf(row[l] - max);
    return 1.0f / tw_sum_f32(row, L);
}

static void attention_f32(const float *Q, const float *K, const float *V, const float *attn_mask, float *Y, int BATCH,
                          int KV, int G, int S, int L, int D, int DV, double SCALE, int is_causal, int MASK_BATCH,
                          int MASK_HEAD, int MASK_ROW, int Q_sBATCH, int Q_sG, int Q_sS, int K_sBATCH, int K_sKV,
                          int K_sL, int V_sBATCH, int V_sKV, int V_sL, int Y_sBATCH, int Y_sG, int Y_sS,
                          void *scratch) {
    static const float zero[16];
    const ptrdiff_t padded = tw_round16(L);
    float *keys = scratch, *values = keys + padded * D, *scores = values + (ptrdiff_t)tw_round16(DV) * L;
    const struct tw_taps by_size = {.rows = 1, .cols = 1, .len = D, .x_pixel = Q_sS};
    const struct tw_taps by_position = {.rows = 1, .cols = 1, .len = L, .x_pixel = padded};
    float out[4 * 16], inverse[4];
    memset(scratch, 0, (size_t)(scores - keys) * sizeof *keys); /* the padding of panels is multiplied too */
    for (int head = 0; head < BATCH * KV * G; head++) {
        const ptrdiff_t b = head / (KV * G), h = head % (KV * G), kv = h / G;
        if (head % G == 0)
            attention_f32_pack(K + b * K_sBATCH + kv * K_sKV, K_sL, D, V + b * V_sBATCH + kv * V_sKV, V_sL, DV, L,
                               (float)SCALE, keys, values);
        for (int s = 0, done = 0; s < S; s += done) {
            const float *q = Q + b * Q_sBATCH + h * Q_sG + (ptrdiff_t)s * Q_sS;
            float *y = Y + b * Y_sBATCH + h * Y_sG + (ptrdiff_t)s * Y_sS;
            for (int l = 0; l < L; l += 16) {
                done = tw_block_f32(S - s, tw_min(16, L - l), by_size, q, keys + (ptrdiff_t)l * D, zero, out);
                for (int i = 0; i < done; i++)
                    memcpy(scores + i * padded + l, out + i * 16, 16 * sizeof *out);
            }
            for (int i = 0; i < done; i++) {
                const float *mask =
                    attn_mask ? attn_mask + b * MASK_BATCH + h * MASK_HEAD + (ptrdiff_t)(s + i) * MASK_ROW : attn_mask;
                inverse[i] = attention_f32_powers(scores + i * padded, L, mask, is_causal ? tw_min(L, s + i + 1) : L);
            }
            for (int n = 0; n < DV; n += 16) {
                const int count = tw_min(16, DV - n);
                tw_block_f32(done, count, by_position, scores, values + (ptrdiff_t)n * L, zero, out);
                for (int i = 0; i < done; i++) {
                    for (int j = 0; j < count; j++)
                        y[i * Y_sS + n + j] = out[i * 16 + j] * inverse[i];
                }
            }
        }
    }
}
