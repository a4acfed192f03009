/* Jobs of ITA, an engine for products of tiles of 64 x 64 bytes. The driver describes a job and goes on; four may be on their
 * way. The platform says where its registers are (TW_ITA), and where the memory begins that it works in (TW_ITA_MEMORY). */
#ifndef TILEWRIGHT_ITA_H
#define TILEWRIGHT_ITA_H

#include <stdint.h>

#define TW_ITA_REGISTER(offset) (*(volatile uint32_t *)(TW_ITA + (offset)))
#define TW_ITA_TILE 4096
#define TW_ITA_BIAS 192
#define TW_ITA_CONTEXTS 4

#define TW_ITA_LINEAR 2u
#define TW_ITA_SINGLE_ATTENTION 3u
#define TW_ITA_FIRST 1u /* loads the first rows of its weights */
#define TW_ITA_NEXT 2u  /* loads those of the next job */
#define TW_ITA_NO_BIAS 4u
#define TW_ITA_ROW_BIAS 8u /* biases are for rows of the result */
#define TW_ITA_NO_OUTPUT 16u

/* How many jobs have been started. */
extern uint32_t tw_ita_jobs;

/* Behind it all jobs are done; if not `recent`, those that were started before the last call. */
void tw_await_ita(int recent);

/* Behind it all jobs are done, and the next one begins a layer, whatever the last one was. */
void tw_ita_restart(void);

/* What jobs of a layer have in common: scales of four steps each, the mix of values being the first of the second four. */
struct tw_ita_layer {
    uint32_t tiles, mult, shift, add, mix_mult, mix_shift, mix_add, kind, curve, activation;
};

static inline uint32_t tw_ita_offset(const void *at) { return (uint32_t)(uintptr_t)at - TW_ITA_MEMORY; }

/* Waits for a context; the first jobs of a layer set what they have in common in each of them. Inlined, as most of what it
 * gets is constant where it is called: else the engine waits for its driver. */
static inline __attribute__((always_inline)) void tw_ita_start(const struct tw_ita_layer *layer, int job,
                                                               const int8_t *input, const int8_t *weights,
                                                               const int8_t *next, const uint8_t *bias, int8_t *output,
                                                               uint32_t flags) {
    volatile uint32_t *const r = &TW_ITA_REGISTER(0x20);
    uint32_t number;
    do
        number = TW_ITA_REGISTER(4);
    while ((int32_t)number < 0);
    tw_ita_jobs = number + 1;
    r[0] = tw_ita_offset(input);
    r[1] = tw_ita_offset(weights);
    r[2] = tw_ita_offset(next);
    r[3] = tw_ita_offset(bias);
    r[4] = tw_ita_offset(output);
    r[14] = flags;
    if (job < TW_ITA_CONTEXTS) {
        r[6] = layer->tiles;
        r[7] = layer->mult;
        r[8] = layer->mix_mult;
        r[9] = layer->shift;
        r[10] = layer->mix_shift;
        r[11] = layer->add;
        r[12] = layer->mix_add;
        r[13] = layer->kind;
        r[15] = layer->curve;
        r[16] = layer->activation;
    }
    TW_ITA_REGISTER(0) = 0;
}

#endif
