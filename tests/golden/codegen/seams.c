static void concat_nest(float *restrict p_concat_result, const float *restrict p_inputs0, const float *restrict p_inputs1) {
    for (int D0 = 0; D0 < 2; D0++) {
        for (int D2 = 0; D2 < 12; D2++) {
            const float inputs0 = p_inputs0[D0 * 12 + D2];
            p_concat_result[D0 * 32 + D2] = (float)(inputs0);
        }
    }
    for (int D0 = 0; D0 < 2; D0++) {
        for (int D2 = 12; D2 < 32; D2++) {
            const float inputs1 = p_inputs1[D0 * 20 + D2 - 12];
            p_concat_result[D0 * 32 + D2] = (float)(inputs1);
        }
    }
}

static void pad_nest(int8_t *restrict p_output, const int8_t *restrict p_data) {
    for (int D0 = 0; D0 < 3; D0++) {
        for (int D2 = 0; D2 < 8; D2++) {
            const int8_t constant_value = 7;
            p_output[D0 * 56 + D2] = (int8_t)(constant_value);
        }
    }
    for (int D0 = 0; D0 < 3; D0++) {
        for (int D1 = 1; D1 < 5; D1++) {
            for (int D2 = 0; D2 < 5; D2++) {
                const int8_t data = p_data[D0 * 20 + D1 * 5 + D2 - 5];
                p_output[D0 * 56 + D1 * 8 + D2] = (int8_t)(data);
            }
        }
    }
    for (int D0 = 0; D0 < 3; D0++) {
        for (int D1 = 1; D1 < 5; D1++) {
            for (int D2 = 5; D2 < 8; D2++) {
                const int8_t constant_value = 7;
                p_output[D0 * 56 + D1 * 8 + D2] = (int8_t)(constant_value);
            }
        }
    }
    for (int D0 = 0; D0 < 3; D0++) {
        for (int D2 = 40; D2 < 56; D2++) {
            const int8_t constant_value = 7;
            p_output[D0 * 56 + D2] = (int8_t)(constant_value);
        }
    }
}

static void split_nest(float *restrict p_outputs0, float *restrict p_outputs1, const float *restrict p_input) {
    for (int D1 = 0; D1 < 6; D1++) {
        const float input = p_input[D1];
        p_outputs0[D1] = (float)(input);
    }
    for (int D1 = 6; D1 < 10; D1++) {
        const float input = p_input[D1];
        p_outputs1[D1 - 6] = (float)(input);
    }
}

static void convtranspose_nest(float *restrict p_Y, const float *restrict p_X, const float *restrict p_W) {
    for (int OW = 0; OW < 8; OW++) {
        float acc = 0;
        const int KW_first = tw_max(0, OW - 6);
        const int KW_hit = KW_first + ((OW + 1 - KW_first) % 2 + 2) % 2;
        const int KW_end = tw_min(3, OW + 2);
        for (int C = 0; C < 2; C++) {
            for (int KW = KW_hit; KW < KW_end; KW += 2) {
                const float X = p_X[C * 4 + (OW + 1 - KW) / 2];
                const float W = p_W[C * 3 + KW];
                acc += X * W;
            }
        }
        p_Y[OW] = (float)(acc);
    }
}

static void conv_nest(int32_t *restrict p_Y, const uint8_t *restrict p_X, const int8_t *restrict p_W) {
    for (int OW = 0; OW < 5; OW++) {
        uint32_t acc = 0;
        for (int C = 0; C < 1; C++) {
            for (int KW = 0; KW < 3; KW++) {
                const uint8_t X_near = p_X[OW + KW - 1 >= 0 && 5 - OW - KW >= 0 ? C * 5 + OW + KW - 1 : 0];
                const uint8_t X = OW + KW - 1 >= 0 && 5 - OW - KW >= 0 ? X_near : (uint8_t)(3);
                const int8_t W = p_W[C * 3 + KW];
                acc += (uint32_t)X * (uint32_t)W;
            }
        }
        p_Y[OW] = (int32_t)(acc);
    }
}
