/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", C: "C % 4 == 0", X_s2: "X_s2 % 4 == 0", X_s1: "X_s1 % 4 == 0", X_s0: "X_s0 % 4 == 0"}
pack: {W: "G,F,C,KH,KW -> G,F/4,KH,KW,C/4,F%4,C%4"}
epilogue: row
strided: [X, Y]
scratch: "24*(KH*KW + 2) + KW*C"
# Blocks of four pixels and four channels, of which a core has some that follow each other: words of a block and its runs, which
# are rows of the filter where all taps lie inside, side by side, and single taps elsewhere; results, which are single where
# there are no four channels. For each four pixels the list of runs is made once.
cycles:
  words: (BLOCKS := steps(G * fours(N * OH * OW) * (DEEP := fours(F)), PARTS)) * KH * KW * words(C)
  runs: BLOCKS / max(SETS := steps(BLOCKS, max(DEEP, some(KW))) + some(max(BLOCKS, DEEP) % max(min(BLOCKS, DEEP), some(KW))), some(KW))
    * (RUNS := KH * (SETS + (KW - some(KW)) * min(SETS, (some(X_s2 - C) + several(dilations_1)) * SETS + X_o2 * steps(SETS, max(fours(OW), some(KW))))))
  listed: RUNS
  pixels: SETS
  blocks: BLOCKS
  single: BLOCKS * ragged_fours(F)
  behind: unless(SCALES * BYTES) * BLOCKS * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"
#include "tilewright_runs.h"
#include "tilewright_scale.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

TW_INLINE void results(const int32_t *sum, const struct tw_pool_pixels *pixels, void *Y, int channel, int channels,
                       const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
#if STORE_SCALES
    if (channels == 4) {
        const struct tw_pool_scale scale = TW_POOL_SCALE_OF(&e, channel);
        for (int i = 0; i < pixels->count; i++, sum += 4)
            tw_pool_bytes(&scale, STORE_SIGNED, sum[0], sum[1], sum[2], sum[3], (char *)Y + pixels->to[i] + channel);
        return;
    }
#endif
    for (int i = 0; i < pixels->count; i++, sum += 4) {
        if (channels == 4)
            STORE_4(&e, Y, sum[0], sum[1], sum[2], sum[3], pixels->to[i] + channel, channel);
        else
            STORE(epilogue, Y, sum, pixels->to[i] + channel, 0, channel, 1, channels);
    }
}

static void conv2d_pool_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int F, int OH, int OW,
                           int C, int KH, int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1,
                           int Y_s2, int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0,
                           int dilations_1, int x_zero_point, int PART, int PARTS, void *scratch,
                           const struct Epilogue *epilogue) {
    const struct tw_pool_image image = TW_POOL_IMAGE;
    const int together = KW == 1 || (dilations_1 == 1 && X_s2 == C);
    const int deep = (F + 3) >> 2, length = 4 * KH * KW * C;
    const struct tw_pool_share mine = tw_pool_share(tw_pool_fours(&image) * G * deep, PART, PARTS);
    const int below = (OH - 1) * strides_0 - pads_0 + (KH - 1) * dilations_0 - X_n1;
    const int beside = (OW - 1) * strides_1 - pads_1 + (KW - 1) * dilations_1 - X_n2;
    struct tw_pool_run *const runs = scratch;
    uint32_t *const outside = (uint32_t *)(void *)(runs + KH * KW + 2);
    if (pads_0 > 0 || pads_1 > 0 || below >= 0 || beside >= 0)
        for (int i = 0; i < KW * C >> 2; i++)
            outside[i] = (uint32_t)(x_zero_point & 0xFF) * 0x01010101u;
    for (int block = mine.begin, done; block < mine.end; block += done) {
        const int at = block / deep, from = block % deep, g = at % G;
        struct tw_pool_pixels pixels;
        tw_pool_find(&image, at / G, &pixels);
        done = tw_min(deep - from, mine.end - block);
        int least = pixels.col[0], most = least;
        for (int i = 1; i < 4; i++)
            least = tw_min(least, pixels.col[i]), most = tw_max(most, pixels.col[i]);
        /* Taps of a row are one run where all of them lie inside, side by side. Cores that read the same words begin at
         * different ones, and with different channels. */
        const int wide = together && least >= 0 && most + (KW - 1) * dilations_1 < X_n2 ? KW : 1;
        const int parts = KH * KW / wide, bytes = 4 * wide * C;
        const int start = (at + from) % (length >> 4) << 4, turned = start / bytes;
        struct tw_pool_run *run = runs + (turned ? parts - turned : 0);
        for (int kh = 0, b = 0; kh < KH; kh++) {
            for (int kw = 0; kw < KW; kw += wide, b += bytes) {
                const int down = kh * dilations_0, right = kw * dilations_1;
                const T *const x = X + g * C + down * X_s1 + right * X_s2;
                for (int i = 0; i < 4; i++) {
                    const int row = pixels.row[i] + down, col = pixels.col[i] + right;
                    const int inside = row >= 0 && row < X_n1 && col >= 0 && col < X_n2;
                    run->a[i] = inside ? x + pixels.from[i] : (const T *)outside;
                }
                run->b = b;
                run->bytes = bytes;
                if (++run == runs + parts)
                    run = runs;
            }
        }
        tw_pool_turn(runs, parts, start - turned * bytes);
        for (int i = 0; i < done; i++) {
            const int f = from + (i + at) % done, channel = g * F + 4 * f, channels = tw_min(F - 4 * f, 4);
            int32_t sums[16], panel[4];
            const int32_t *const first = tw_pool_first(B, channel, channels, panel);
            if (((T)-1) < 0)
                tw_pool_runs_s8(sums, runs, first, W + (g * deep + f) * length);
            else
                tw_pool_runs_u8(sums, runs, first, W + (g * deep + f) * length);
            results(sums, &pixels, Y, channel, channels, epilogue);
        }
    }
}
