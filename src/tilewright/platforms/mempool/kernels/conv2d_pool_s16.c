/* ---
op: Conv
types: {X: int16, W: int16, B: int32, Y: int32}
when: {channels_last: "== 1", C: "C % 2 == 0", X_s2: "X_s2 % 2 == 0", X_s1: "X_s1 % 2 == 0", X_s0: "X_s0 % 2 == 0"}
pack: {W: "G,F,C,KH,KW -> G,F/4,KH,KW,C/2,F%4,C%2"}
epilogue: row
strided: [X, Y]
scratch: "24*(KH*KW + 2) + 2*KW*C"
# As of bytes (conv2d_pool_s8.c), with two products in a word.
cycles:
  words: (BLOCKS := steps(G * fours(N * OH * OW) * (DEEP := fours(F)), PARTS)) * KH * KW * twos(C)
  runs: BLOCKS / max(SETS := steps(BLOCKS, max(DEEP, some(KW))) + some(max(BLOCKS, DEEP) % max(min(BLOCKS, DEEP), some(KW))), some(KW))
    * (RUNS := KH * (SETS + (KW - some(KW)) * min(SETS, (some(X_s2 - C) + several(dilations_1)) * SETS + X_o2 * steps(SETS, max(fours(OW), some(KW))))))
  listed: RUNS
  pixels: SETS
  blocks: BLOCKS
  single: BLOCKS * ragged_fours(F)
  behind: BLOCKS * FUSED
  call: some(N)
--- */
#include "tilewright_kernel.h"
#include "tilewright_list.h"

static void conv2d_pool_s16(const int16_t *X, const int16_t *W, const int32_t *B, void *Y, int N, int G, int F, int OH,
                            int OW, int C, int KH, int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0,
                            int Y_s1, int Y_s2, int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0,
                            int dilations_1, int x_zero_point, int PART, int PARTS, void *scratch,
                            const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const struct tw_pool_image image = TW_POOL_IMAGE;
    const struct tw_pool_taps taps = TW_POOL_TAPS(2);
    const int deep = (F + 3) >> 2, length = 4 * KH * KW * C;
    const struct tw_pool_share mine = tw_pool_share(tw_pool_fours(&image) * G * deep, PART, PARTS);
    struct tw_pool_run *const runs = scratch;
    uint32_t *const outside = (uint32_t *)(void *)(runs + KH * KW + 2);
    if (tw_pool_over(&image, &taps))
        for (int i = 0; i < KW * C >> 1; i++)
            outside[i] = (uint32_t)(x_zero_point & 0xFFFF) * 0x00010001u;
    for (int block = mine.begin, done; block < mine.end; block += done) {
        const int at = block / deep, from = block % deep, g = at % G;
        struct tw_pool_pixels pixels;
        tw_pool_find(&image, at / G, &pixels);
        done = tw_min(deep - from, mine.end - block);
        tw_pool_list(&taps, &pixels, (const char *)(X + g * C), outside, at + from, runs);
        for (int i = 0; i < done; i++) {
            const int f = from + (i + at) % done, channel = g * F + 4 * f, channels = tw_min(F - 4 * f, 4);
            int32_t sums[16], panel[4];
            tw_pool_runs_s16(sums, runs, tw_pool_first(B, channel, channels, panel),
                             (const int8_t *)(W + (g * deep + f) * length));
            const int32_t *sum = sums;
            for (int j = 0; j < pixels.count; j++, sum += 4) {
                if (channels == 4)
                    STORE_4(&e, Y, sum[0], sum[1], sum[2], sum[3], pixels.to[j] + channel, channel);
                else
                    STORE(epilogue, Y, sum, pixels.to[j] + channel, 0, channel, 1, channels);
            }
        }
    }
}
