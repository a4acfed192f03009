/* ---
op: Conv
types: {X: int16, W: int16, B: int32, Y: int32}
when: {channels_last: "== 1", C: "C % 2 != 0 and C * F > 1"}
pack: {W: "G,F,C,KH,KW -> G,F/4,(KH,KW,C)/2,F%4,(KH,KW,C)%2"}
epilogue: row
strided: [X, Y]
scratch: "16*((KH*KW*C+1)//2)"
# As of bytes (conv2d_pool_bytes_s8.c), with two products in a word.
cycles:
  words: (BLOCKS := steps(G * (FOURS := fours(N * OH * OW)) * (DEEP := fours(F)), PARTS)) * twos(KH * KW * C)
  copied: (PIXELS := (SETS := steps(BLOCKS, max(DEEP, some(KW))) + some(max(BLOCKS, DEEP) % max(min(BLOCKS, DEEP), some(KW)))) * N * OH * OW / max(FOURS, some(KW))) * KH * KW * C
  runs: KH * PIXELS / max(SETS, some(KW)) * (SETS + (KW - some(KW)) * min(SETS, (some(X_s2 - C) + several(dilations_1)) * SETS + X_o2 * steps(SETS, max(fours(OW), some(KW)))))
  pixels: SETS
  blocks: BLOCKS
  single: SETS * left_of_fours(F)
  behind: BLOCKS * FUSED
  call: some(N)
--- */
#include "tilewright_kernel.h"
#include "tilewright_list.h"

/* The window of one of four pixels: rows of the filter at once where all taps lie inside, side by side. Loads lie ahead of
 * stores, as words of other groups come after five cycles. */
TW_INLINE void copied(const struct tw_pool_taps *taps, const struct tw_pool_pixels *pixels, int pixel, const int16_t *X,
                      int16_t zero, int16_t *to) {
    const int together = taps->KW == 1 || (taps->dilations_1 == 1 && taps->X_s2 == taps->C);
    const int first = pixels->col[pixel], inside = first >= 0 && first + taps->KW <= taps->X_n2;
    const int wide = together && inside ? taps->KW : 1;
    for (int kh = 0; kh < taps->KH; kh++) {
        const int down = kh * taps->dilations_0, row = pixels->row[pixel] + down;
        for (int kw = 0; kw < taps->KW; kw += wide) {
            const int right = kw * taps->dilations_1, col = first + right;
            const int there = row >= 0 && row < taps->X_n1 && col >= 0 && col < taps->X_n2;
            const int16_t *from = X + pixels->from[pixel] + down * taps->X_s1 + right * taps->X_s2;
            int left = wide * taps->C;
            for (; there && left >= 4; left -= 4, to += 4, from += 4) {
                const int16_t a = from[0], b = from[1], c = from[2], d = from[3];
                to[0] = a, to[1] = b, to[2] = c, to[3] = d;
            }
            for (; left > 0; left--)
                *to++ = there ? *from++ : zero;
        }
    }
}

static void conv2d_pool_copied_s16(const int16_t *X, const int16_t *W, const int32_t *B, void *Y, int N, int G, int F,
                                   int OH, int OW, int C, int KH, int KW, int X_n1, int X_n2, int X_s0, int X_s1,
                                   int X_s2, int Y_s0, int Y_s1, int Y_s2, int strides_0, int strides_1, int pads_0,
                                   int pads_1, int dilations_0, int dilations_1, int x_zero_point, int PART, int PARTS,
                                   void *scratch, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const struct tw_pool_image image = TW_POOL_IMAGE;
    const struct tw_pool_taps taps = TW_POOL_TAPS(2);
    const int deep = (F + 3) >> 2, words = (KH * KW * C + 1) >> 1;
    const struct tw_pool_share mine = tw_pool_share(tw_pool_fours(&image) * G * deep, PART, PARTS);
    int16_t *const windows = scratch;
    for (int i = 1; i <= 4; i++) /* what is behind a window meets a weight of zero, but has to be there */
        windows[2 * i * words - 1] = 0;
    for (int block = mine.begin, done; block < mine.end; block += done) {
        const int at = block / deep, from = block % deep, g = at % G;
        struct tw_pool_pixels pixels;
        struct tw_pool_run runs[3];
        tw_pool_find(&image, at / G, &pixels);
        done = tw_min(deep - from, mine.end - block);
        for (int i = 0; i < pixels.count; i++)
            copied(&taps, &pixels, i, X + g * C, (int16_t)x_zero_point, windows + 2 * i * words);
        for (int i = 0; i < 4; i++)
            runs->a[i] = windows + 2 * tw_min(i, pixels.count - 1) * words;
        runs->b = 0;
        runs->bytes = words * 16;
        tw_pool_turn(runs, 1, (at + from) % words * 16);
        for (int i = 0; i < done; i++) {
            const int f = from + (i + at) % done, channel = g * F + 4 * f, channels = tw_min(F - 4 * f, 4);
            int32_t sums[16], panel[4];
            tw_pool_runs_s16(sums, runs, tw_pool_first(B, channel, channels, panel),
                             (const int8_t *)(W + (g * deep + f) * words * 8));
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
