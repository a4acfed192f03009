/* Jobs of NEUREKA: 1x1, 12x12 pixels, 64 to 64 channels, 8-bit weights, 32-bit scales and biases, as in the measurements. */
#include "devices.h"

IN_L1 uint8_t input[12 * 12 * 64], weights[64 * 64], output[2][12 * 12 * 64];
IN_L1 uint32_t scales[64], biases[64];

static const uint32_t job[24] = {0,
                                 0,
                                 0,
                                 0,
                                 0,
                                 0,
                                 64,
                                 64 * 12,
                                 0,
                                 32,
                                 64,
                                 64 * 12,
                                 32,
                                 64,
                                 0,
                                 32u << 16 | 32,
                                 6u << 16 | 6,
                                 6u << 16 | 6,
                                 2u << 16 | 2,
                                 2u << 16 | 2,
                                 0,
                                 (uint32_t)-128,
                                 0,
                                 7 | 1u << 4 | 2u << 5 | 2u << 12 | 1u << 15 | 12u << 16 | 1u << 25};

static void trigger(uint32_t which) {
    for (uint32_t i = 0; i < 24; i++)
        REGISTER(NPU + 0x20 + 4 * i) = job[i];
    REGISTER(NPU + 0x20) = (uint32_t)weights;
    REGISTER(NPU + 0x24) = (uint32_t)input;
    REGISTER(NPU + 0x28) = (uint32_t)output[which];
    REGISTER(NPU + 0x2c) = (uint32_t)scales;
    REGISTER(NPU + 0x34) = (uint32_t)biases;
    REGISTER(NPU) = 0;
}

void program(uint32_t core) {
    enable_caches();
    if (core != 0)
        return;
    for (uint32_t i = 0; i < sizeof input; i++) {
        input[i] = (uint8_t)(i * 5 + (i >> 5));
        output[0][i] = output[1][i] = 0xa5;
    }
    for (uint32_t i = 0; i < sizeof weights; i++)
        weights[i] = (uint8_t)(i * 29 + (i >> 4));
    for (uint32_t i = 0; i < 64; i++) {
        scales[i] = 3 + i % 5;
        biases[i] = 100000 + 999 * i;
    }
    set_mask(NPU_EVENT);
    for (int warm = 0; warm < 2; warm++) {
        results[0] = REGISTER(NPU + 0x0c);
        results[1] = REGISTER(NPU + 0x04);
        results[2] = REGISTER(NPU + 0x04); /* the same one is still to be triggered */
        trigger(0);
        results[3] = REGISTER(NPU + 0x0c);
        results[4] = REGISTER(NPU + 0x04);
        trigger(1);
        results[5] = REGISTER(NPU + 0x0c);
        results[6] = REGISTER(NPU + 0x04);
        results[7] = REGISTER(NPU + 0x10);
        uint32_t ends[2];
        results[8] = wait_for_event();
        ends[0] = cycles();
        results[9] = REGISTER(NPU + 0x0c);
        results[10] = wait_for_event();
        ends[1] = cycles();
        results[11] = ends[1] - ends[0];
        results[12] = REGISTER(NPU + 0x0c);
    }
    for (int warm = 0; warm < 2; warm++) {
        (void)REGISTER(NPU + 0x04);
        trigger(1);
        (void)wait_for_event();
        (void)REGISTER(NPU + 0x04);
        uint32_t since = cycles();
        REGISTER(NPU) = 0; /* the registers of the job before the last one */
        (void)wait_for_event();
        uint32_t end = cycles();
        while (REGISTER(NPU + 0x0c) != 0)
            ;
        uint32_t idle_at = cycles();
        results[13] = end - since;
        results[14] = idle_at - since;
    }
}
