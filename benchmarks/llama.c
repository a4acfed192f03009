/* A small Llama written by hand, as one would without a compiler: floats, one thread, rows of weights times a vector.

   llama MODEL TOKEN...: MODEL holds eight 32-bit numbers (width, layers, heads, inner width, words, positions, and two
   floats: base of the rotation, epsilon of the norms) and float weights, output by input: the embedding, then of every
   layer wq, wk, wv, wo, gate, up, down. Reads one token after the other at positions 0, 1, ... and prints the likeliest
   that follows each of them. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct config {
    int32_t dim, layers, heads, ffn, words, context;
    float theta, eps;
};

static float *room(size_t count) {
    float *const found = calloc(count, sizeof *found);
    if (!found)
        exit(1);
    return found;
}

static void norm(float *y, const float *x, int n, float eps) {
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    const float by = 1 / sqrtf(sum / (float)n + eps);
    for (int i = 0; i < n; i++)
        y[i] = x[i] * by;
}

/* y = weights * x, and what `weights` points to moves on. */
static void times(float *restrict y, const float *restrict x, const float **weights, int outputs, int inputs) {
    const float *restrict w = *weights;
    for (int o = 0; o < outputs; o++, w += inputs) {
        float sum = 0;
        for (int i = 0; i < inputs; i++)
            sum += w[i] * x[i];
        y[o] = sum;
    }
    *weights = w;
}

static void rotate(float *x, int heads, int head, int position, float theta) {
    const int half = head / 2;
    for (int i = 0; i < half; i++) {
        const float angle = (float)position * powf(theta, -(float)i / (float)half), c = cosf(angle), s = sinf(angle);
        for (int h = 0; h < heads; h++) {
            float *const left = x + h * head + i, *const right = left + half;
            const float l = *left, r = *right;
            *left = l * c - r * s;
            *right = l * s + r * c;
        }
    }
}

static void attend(float *y, const float *q, const float *keys, const float *values, float *scores, int count, int dim,
                   int heads) {
    const int head = dim / heads;
    for (int h = 0; h < heads; h++) {
        float largest = -INFINITY, sum = 0;
        for (int t = 0; t < count; t++) {
            float score = 0;
            for (int i = 0; i < head; i++)
                score += q[h * head + i] * keys[t * dim + h * head + i];
            scores[t] = score / sqrtf((float)head);
            largest = scores[t] > largest ? scores[t] : largest;
        }
        for (int t = 0; t < count; t++)
            sum += scores[t] = expf(scores[t] - largest);
        for (int i = 0; i < head; i++)
            y[h * head + i] = 0;
        for (int t = 0; t < count; t++)
            for (int i = 0; i < head; i++)
                y[h * head + i] += scores[t] / sum * values[t * dim + h * head + i];
    }
}

int main(int argc, char **argv) {
    struct config c;
    FILE *const file = argc > 2 ? fopen(argv[1], "rb") : NULL;
    if (!file || fread(&c, sizeof c, 1, file) != 1 || argc - 2 > c.context)
        return 2;
    const size_t dim = (size_t)c.dim, ffn = (size_t)c.ffn, rows = (size_t)c.layers * (size_t)c.context;
    const size_t count = (size_t)c.words * dim + (size_t)c.layers * (4 * dim * dim + 3 * dim * ffn);
    float *const weights = room(count);
    if (fread(weights, sizeof *weights, count, file) != count)
        return 2;
    fclose(file);
    float *const x = room(dim), *const inner = room(dim), *const q = room(dim), *const mixed = room(dim);
    float *const out = room(dim), *const gate = room(ffn), *const up = room(ffn), *const logits = room((size_t)c.words);
    float *const scores = room((size_t)c.context), *const keys = room(rows * dim), *const values = room(rows * dim);
    for (int p = 0; p < argc - 2; p++) {
        const float *w = weights + (size_t)c.words * dim;
        for (size_t i = 0; i < dim; i++)
            x[i] = weights[(size_t)atoi(argv[p + 2]) * dim + i];
        for (int l = 0; l < c.layers; l++) {
            float *const cached = keys + (size_t)l * (size_t)c.context * dim, *const key = cached + (size_t)p * dim;
            float *const stored = values + (size_t)l * (size_t)c.context * dim;
            norm(inner, x, c.dim, c.eps);
            times(q, inner, &w, c.dim, c.dim);
            times(key, inner, &w, c.dim, c.dim);
            times(stored + (size_t)p * dim, inner, &w, c.dim, c.dim);
            rotate(q, c.heads, c.dim / c.heads, p, c.theta);
            rotate(key, c.heads, c.dim / c.heads, p, c.theta);
            attend(mixed, q, cached, stored, scores, p + 1, c.dim, c.heads);
            times(out, mixed, &w, c.dim, c.dim);
            for (size_t i = 0; i < dim; i++)
                x[i] += out[i];
            norm(inner, x, c.dim, c.eps);
            times(gate, inner, &w, c.ffn, c.dim);
            times(up, inner, &w, c.ffn, c.dim);
            for (size_t i = 0; i < ffn; i++)
                gate[i] *= up[i] / (1 + expf(-gate[i]));
            times(out, gate, &w, c.dim, c.ffn);
            for (size_t i = 0; i < dim; i++)
                x[i] += out[i];
        }
        norm(inner, x, c.dim, c.eps);
        const float *head = weights;
        times(logits, inner, &head, c.words, c.dim);
        int best = 0;
        for (int i = 1; i < c.words; i++)
            best = logits[i] > logits[best] ? i : best;
        printf("%d\n", best);
    }
    return 0;
}
