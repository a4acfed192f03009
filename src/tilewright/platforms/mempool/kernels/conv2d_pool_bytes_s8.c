/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1", C: "C % 4 != 0 and C * F > 1"}
pack: {W: "G,F,C,KH,KW -> G,F/4,(KH,KW,C)/4,F%4,(KH,KW,C)%4"}
epilogue: row
strided: [X, Y]
scratch: "16*((KH*KW*C+3)//4)"
# Blocks of four pixels and four channels, of which a core has some that follow each other. Windows of four pixels are copied
# once, byte by byte: rows of the filter at once where all taps lie inside, side by side, and single taps elsewhere. Channels that
# are left are stored one by one, with what is fused.
cycles:
  words: (BLOCKS := steps(G * (FOURS := fours(N * OH * OW)) * (DEEP := fours(F)), PARTS)) * words(KH * KW * C)
  bytes: (PIXELS := (SETS := steps(BLOCKS, max(DEEP, some(KW))) + some(max(BLOCKS, DEEP) % max(min(BLOCKS, DEEP), some(KW)))) * N * OH * OW / max(FOURS, some(KW))) * KH * KW * C
  runs: KH * PIXELS / max(SETS, some(KW)) * (SETS + (KW - some(KW)) * min(SETS, (some(X_s2 - C) + several(dilations_1)) * SETS + X_o2 * steps(SETS, max(fours(OW), some(KW)))))
  pixels: SETS
  blocks: BLOCKS
  single: SETS * left_of_fours(F)
  behind: (unless(SCALES * BYTES) * BLOCKS + SCALES * BYTES * SETS * ragged_fours(F)) * N * OH * OW / max(FOURS, some(KW)) * FUSED
  call: 1
--- */
#include "tilewright_kernel.h"
#include "tilewright_runs.h"
#include "tilewright_scale.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Loads lie ahead of stores, as bytes of other groups come after five cycles. */
TW_INLINE char *copied(char *to, const char *from, int bytes) {
    for (; bytes >= 4; bytes -= 4, to += 4, from += 4) {
        const char a = from[0], b = from[1], c = from[2], d = from[3];
        to[0] = a, to[1] = b, to[2] = c, to[3] = d;
    }
    for (; bytes > 0; bytes--)
        *to++ = *from++;
    return to;
}

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

static void conv2d_pool_bytes_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int F, int OH,
                                 int OW, int C, int KH, int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2,
                                 int Y_s0, int Y_s1, int Y_s2, int strides_0, int strides_1, int pads_0, int pads_1,
                                 int dilations_0, int dilations_1, int x_zero_point, int PART, int PARTS, void *scratch,
                                 const struct Epilogue *epilogue) {
    const struct tw_pool_image image = TW_POOL_IMAGE;
    const int together = KW == 1 || (dilations_1 == 1 && X_s2 == C);
    const int deep = (F + 3) >> 2, words = (KH * KW * C + 3) >> 2;
    const struct tw_pool_share mine = tw_pool_share(tw_pool_fours(&image) * G * deep, PART, PARTS);
    char *const windows = scratch;
    for (int i = 1; i <= 4; i++) /* behind each window the weights are zero; the bytes just have to be there */
        ((int32_t *)scratch)[i * words - 1] = 0;
    for (int block = mine.begin, done; block < mine.end; block += done) {
        const int at = block / deep, from = block % deep, g = at % G;
        struct tw_pool_pixels pixels;
        struct tw_pool_run runs[3];
        tw_pool_find(&image, at / G, &pixels);
        done = tw_min(deep - from, mine.end - block);
        for (int i = 0; i < pixels.count; i++) {
            const int wide = together && pixels.col[i] >= 0 && pixels.col[i] + KW <= X_n2 ? KW : 1;
            const T *const x = X + g * C + pixels.from[i];
            char *to = windows + 4 * i * words;
            for (int kh = 0; kh < KH; kh++) {
                const int down = kh * dilations_0, row = pixels.row[i] + down, inside = row >= 0 && row < X_n1;
                for (int kw = 0; kw < KW; kw += wide) {
                    const int right = kw * dilations_1, col = pixels.col[i] + right;
                    if (inside && col >= 0 && col < X_n2) {
                        to = copied(to, (const char *)(x + down * X_s1 + right * X_s2), wide * C);
                    } else {
                        for (int j = 0; j < wide * C; j++)
                            *to++ = (char)x_zero_point;
                    }
                }
            }
        }
        for (int i = 0; i < 4; i++)
            runs->a[i] = windows + 4 * tw_min(i, pixels.count - 1) * words;
        runs->b = 0;
        runs->bytes = words * 16;
        tw_pool_turn(runs, 1, (at + from) % words * 16);
        for (int i = 0; i < done; i++) {
            const int f = from + (i + at) % done, channel = g * F + 4 * f, channels = tw_min(F - 4 * f, 4);
            int32_t sums[16], panel[4];
            const int32_t *const first = tw_pool_first(B, channel, channels, panel);
            if (((T)-1) < 0)
                tw_pool_runs_s8(sums, runs, first, W + (g * deep + f) * words * 16);
            else
                tw_pool_runs_u8(sums, runs, first, W + (g * deep + f) * words * 16);
            results(sums, &pixels, Y, channel, channels, epilogue);
        }
    }
}
