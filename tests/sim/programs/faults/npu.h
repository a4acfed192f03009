/* One job of the accelerator: 1x1, 6x6 pixels, 32 channels in and out, 8-bit weights from L1. */
#ifndef NPU_H
#define NPU_H
#include "chip.h"

#define PIXELS 36
#define CHANNELS 32
IN_L1 static volatile uint8_t npu_input[PIXELS * CHANNELS];
IN_L1 static volatile uint8_t npu_output[PIXELS * CHANNELS];
IN_L1 static volatile uint8_t npu_weights[CHANNELS * CHANNELS];
IN_L1 static volatile uint8_t npu_scale[CHANNELS];

static inline void npu_fill(uint32_t left_out) {
    for (uint32_t i = 0; i < PIXELS * CHANNELS - left_out; i++)
        npu_input[i] = 1;
    for (uint32_t i = 0; i < CHANNELS * CHANNELS; i++)
        npu_weights[i] = 0xff;
    for (uint32_t i = 0; i < CHANNELS; i++)
        npu_scale[i] = 1;
}

static inline void npu_set(uint32_t number, uint32_t value) { REGISTER(NPU + 0x20 + 4 * number) = value; }

static inline void npu_start_for(volatile uint8_t *output) {
    while ((int32_t)REGISTER(NPU + 4) < 0)
        ;
    npu_set(0, (uint32_t)npu_weights);
    npu_set(1, (uint32_t)npu_input);
    npu_set(2, (uint32_t)output);
    npu_set(3, (uint32_t)npu_scale);
    npu_set(4, 0);
    npu_set(5, 0);
    npu_set(6, CHANNELS);
    npu_set(7, 6 * CHANNELS);
    npu_set(8, 0);
    npu_set(9, 32);
    npu_set(10, CHANNELS);
    npu_set(11, 6 * CHANNELS);
    npu_set(12, 32);
    npu_set(13, 32);
    npu_set(14, 0);
    npu_set(15, CHANNELS << 16 | CHANNELS);
    npu_set(16, 6 << 16 | 6);
    npu_set(17, 6 << 16 | 6);
    npu_set(18, 1 << 16 | 1);
    npu_set(19, 1 << 16 | 1);
    npu_set(20, 0);
    npu_set(21, 0xffffff80);
    npu_set(22, 0);
    /* 8-bit weights, quantised, 1x1, 8-bit scale, shift 8 */
    npu_set(23, 7 | 1 << 4 | 2 << 5 | 8 << 16);
    REGISTER(NPU) = 0; /* STARTS */
}

static inline void npu_start(void) { npu_start_for(npu_output); }
#endif
