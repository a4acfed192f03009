/* ---
op: ITAHeads
types: {X: int8, W: int8, Y: int8}
scratch: "(3 * S + 1) * projection + S"
# Products of four projections, scores and what these weigh.
cycles:
  products: H * S * projection * (E + E + E + E + S + S)
--- */
#include "tilewright_kernel.h"

#include "tilewright_ita_scale.h"

/* Entry of a head in W: where its block is, multipliers, shifts and offsets. */
#define ITA_HEADS_ENTRY 44

static inline int32_t ita_heads_word(const int8_t *from) {
    int32_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

static inline int8_t ita_heads_scaled(const int8_t *entry, int step, int32_t sum) {
    const uint32_t product = (uint32_t)sum * (uint8_t)entry[4 + step]; /* of 32 bits */
    return (int8_t)tw_ita_scaled((int32_t)product, 1, (uint8_t)entry[12 + step], ita_heads_word(entry + 20 + 4 * step));
}

/* A row in strips of 16 columns, `rows` of 16 bytes each, times a row of weights, which may lie in strips, too. */
static inline int32_t ita_heads_dot(const int8_t *x, int rows, const int8_t *w, int weights, int inner, int32_t sum) {
    for (int i = 0; i < inner; i++)
        sum += x[i / 16 * 16 * rows + i % 16] * w[i / 16 * 16 * weights + i % 16];
    return sum;
}

static inline int ita_heads_halvings(int below) { return (below + 16) >> 5; }

/* Scores become weights, in groups of 16; an entry at the maximum adds 2^10 to the sum. */
static void ita_heads_soften(int8_t *row, int count) {
    int top = -128;
    int32_t sum = 0;
    for (int first = 0; first < count; first += 16) {
        int highest = top;
        for (int i = first; i < first + 16; i++)
            highest = tw_max(highest, row[i]);
        sum >>= highest > top ? ita_heads_halvings(highest - top) : 0;
        top = highest;
        for (int i = first; i < first + 16; i++)
            sum += 1024 >> ita_heads_halvings(top - row[i]);
    }
    const int32_t inverse = 130048 / sum;
    for (int i = 0; i < count; i++)
        row[i] = (int8_t)(inverse >> ita_heads_halvings(top - row[i]));
}

static void ita_heads(const int8_t *X, const int8_t *W, int8_t *Y, int H, int S, int E, int projection, void *scratch) {
    const int P = projection;
    int8_t *const queries = scratch, *const keys = queries + S * P, *const values = keys + S * P,
                  *const mixed = values + S * P, *const row = mixed + P;
    const int8_t *const inputs = X + 3 * E * P;
    for (int h = 0; h < H; h++, Y += S * E) {
        const int8_t *const entry = W + h * ITA_HEADS_ENTRY, *const block = h ? W + ita_heads_word(entry) : X;
        const int8_t *const wq = block + 3 * E * P + 2 * S * E, *const biases = wq + E * P;
        for (int s = 0; s < S; s++)
            for (int p = 0; p < P; p++) {
                const int8_t *const q = inputs + 16 * s, *const k = q + S * E, *const bias = biases + 4 * (E + p);
                queries[s * P + p] =
                    ita_heads_scaled(entry, 0, ita_heads_dot(q, S, wq + 16 * p, P, E, ita_heads_word(bias + 8 * P)));
                keys[s * P + p] = ita_heads_scaled(
                    entry, 1, ita_heads_dot(k, S, block + (2 * P + p) * E, 1, E, ita_heads_word(bias + 4 * P)));
                values[s * P + p] =
                    ita_heads_scaled(entry, 3, ita_heads_dot(k, S, block + (P + p) * E, 1, E, ita_heads_word(bias)));
            }
        for (int s = 0; s < S; s++) {
            for (int key = 0; key < S; key++)
                row[key] = ita_heads_scaled(entry, 2, ita_heads_dot(queries + s * P, 1, keys + key * P, 1, P, 0));
            ita_heads_soften(row, S);
            for (int p = 0; p < P; p++) {
                int32_t sum = 0;
                for (int key = 0; key < S; key++)
                    sum += row[key] * values[key * P + p];
                mixed[p] = ita_heads_scaled(entry, 4, sum);
            }
            for (int e = 0; e < E; e++)
                Y[s * E + e] = ita_heads_scaled(
                    entry, 5, ita_heads_dot(mixed, 1, block + e * P, 1, P, ita_heads_word(biases + 4 * e)));
        }
    }
}
