static void sub_nest(int32_t *restrict p_Y, const int32_t *restrict p_A, const int32_t *restrict p_B, const int32_t *restrict p_s0_B) {
    for (int D0 = 0; D0 < 2; D0++) {
        for (int D1 = 0; D1 < 3; D1++) {
            for (int D2 = 0; D2 < 4; D2++) {
                const int32_t A = p_A[D0 * 12 + D1 * 4 + D2];
                const int32_t B = p_B[D1];
                const int32_t v0 = (int32_t)((uint32_t)A - (uint32_t)B);
                int32_t v1;
                {
                    const int32_t A = v0;
                    const int32_t B = p_s0_B[D0 * 12 + D1 * 4 + D2];
                    v1 = (int32_t)((uint32_t)A + (uint32_t)B);
                }
                p_Y[D0 * 12 + D1 * 4 + D2] = v1;
            }
        }
    }
}

static void neg_nest(int32_t *restrict p_Y, const int32_t *restrict p_X) {
    for (int D2 = 0; D2 < 24; D2++) {
        const int32_t X = p_X[D2];
        const int32_t v0 = (int32_t)(0 - (uint32_t)X);
        int32_t v1;
        {
            const int32_t A = p_X[D2];
            const int32_t B = v0;
            v1 = (int32_t)((uint32_t)A * (uint32_t)B);
        }
        p_Y[D2] = v1;
    }
}
