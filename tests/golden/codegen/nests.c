static void add_nest(float *restrict p_Y, const float *restrict p_A, const float *restrict p_B) {
    for (int D0 = 0; D0 < 2; D0++) {
        for (int D1 = 0; D1 < 3; D1++) {
            for (int D3 = 0; D3 < 20; D3++) {
                const float A = p_A[D0 * 60 + D1 * 20 + D3];
                const float B = p_B[D1];
                p_Y[D0 * 60 + D1 * 20 + D3] = (float)(A + B);
            }
        }
    }
}

static void reducesum_nest(float *restrict p_reduced, const float *restrict p_data) {
    for (int D0 = 0; D0 < 2; D0++) {
        for (int D2 = 0; D2 < 4; D2++) {
            float acc = 0;
            for (int D1 = 0; D1 < 3; D1++) {
                for (int D3 = 0; D3 < 5; D3++) {
                    const float data = p_data[D0 * 60 + D1 * 20 + D2 * 5 + D3];
                    const float term = (float)data;
                    acc += term;
                }
            }
            p_reduced[D0 * 4 + D2] = (float)(acc);
        }
    }
}

static void gather_nest(float *restrict p_output, const float *restrict p_data, const int64_t *restrict p_indices) {
#define data_at(i0, i1, i2, i3) (p_data[(i0) * 60 + (i1) * 20 + (i2) * 5 + (i3)])
    for (int D0 = 0; D0 < 2; D0++) {
        for (int D1 = 0; D1 < 3; D1++) {
            for (int D2 = 0; D2 < 2; D2++) {
                for (int D3 = 0; D3 < 5; D3++) {
                    int64_t at = 0;
                    const int64_t indices = p_indices[D2];
                    at = indices < 0 ? indices + 4 : indices; at = at < 0 ? 0 : at > 3 ? 3 : at;
                    p_output[D0 * 30 + D1 * 10 + D2 * 5 + D3] = (float)(data_at(D0, D1, at, D3));
                }
            }
        }
    }
#undef data_at
}

static void exp_nest(uint16_t *restrict p_Y, const uint16_t *restrict p_X) {
    for (int D0 = 0; D0 < 6; D0++) {
        const float X = tw_float16_load(p_X[D0]);
        p_Y[D0] = tw_float16_store((float)(tw_expf(X)));
    }
}

static void maxpool_nest(int16_t *restrict p_Y, const int16_t *restrict p_X) {
    for (int C = 0; C < 2; C++) {
        for (int OH = 0; OH < 5; OH++) {
            for (int OW = 0; OW < 5; OW++) {
                int16_t best = INT16_MIN;
                const int KH_first = tw_max(0, 1 - OH);
                const int KH_end = tw_min(3, 6 - OH);
                const int KW_first = tw_max(0, 1 - OW);
                const int KW_end = tw_min(3, 6 - OW);
                for (int KH = KH_first; KH < KH_end; KH++) {
                    for (int KW = KW_first; KW < KW_end; KW++) {
                        const int16_t X = p_X[C * 25 + OH * 5 + KH * 5 + OW + KW - 6];
                        best = X > best ? X : best;
                    }
                }
                p_Y[C * 25 + OH * 5 + OW] = (int16_t)(best);
            }
        }
    }
}
