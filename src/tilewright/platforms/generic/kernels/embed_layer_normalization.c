/* ---
op: EmbedLayerNormalization
types: {input_ids: int32, segment_ids: int32, word_embedding: T, position_embedding: T, segment_embedding: T, gamma: T, beta: T, mask: int32, position_ids: int32, output: T, mask_index: int32, embedding_sum: T}
T: [float32, float64]
whole: [S]
# Sums of rows that are looked up, three loops over each, in numbers that may be doubles, and a root of a double.
cycles:
  elements: BATCH * S * AXIS
  doubles: (DOUBLE := several(words(word_embedding_bytes))) * BATCH * S * AXIS
  rows: BATCH * S
  double_rows: DOUBLE * BATCH * S
  call: 1
--- */
#include "tilewright_kernel.h"
#include <math.h>

#ifndef TW_GENERATED
typedef float T;
#endif

static void embed_layer_normalization(const int32_t *input_ids, const int32_t *segment_ids, const T *word_embedding,
                                      const T *position_embedding, const T *segment_embedding, const T *gamma,
                                      const T *beta, const int32_t *mask, const int32_t *position_ids, T *output,
                                      int32_t *mask_index, T *embedding_sum, int BATCH, int S, int AXIS, int SHARED,
                                      double epsilon) {
    for (int row = 0; row < BATCH * S; row++) {
        const int place = position_ids ? position_ids[SHARED ? row % S : row] : row % S;
        const T *word = word_embedding + (ptrdiff_t)input_ids[row] * AXIS;
        const T *position = position_embedding + (ptrdiff_t)place * AXIS;
        const T *segment = segment_ids ? segment_embedding + (ptrdiff_t)segment_ids[row] * AXIS : segment_embedding;
        T *y = output + (ptrdiff_t)row * AXIS;
        T sum = 0, squares = 0;
        for (int i = 0; i < AXIS; i++) {
            y[i] = word[i] + position[i] + (segment_ids ? segment[i] : 0);
            sum += y[i];
        }
        if (embedding_sum)
            memcpy(embedding_sum + (ptrdiff_t)row * AXIS, y, (size_t)AXIS * sizeof *y);
        const T mean = sum / (T)AXIS;
        for (int i = 0; i < AXIS; i++)
            squares += (y[i] - mean) * (y[i] - mean);
        const T inverse = (T)(1 / sqrt((double)squares / AXIS + epsilon));
        for (int i = 0; i < AXIS; i++)
            y[i] = (y[i] - mean) * inverse * gamma[i] + beta[i];
    }
    for (int b = 0; mask_index && b < BATCH; b++) {
        mask_index[b] = 0;
        for (int s = 0; mask && s < S; s++)
            mask_index[b] += mask[b * S + s] == 1;
    }
}
