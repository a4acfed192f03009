/* ---
op: Conv
types: {X: T, W: int8, B: int32, Y: int32}
T: [int8, uint8]
when: {channels_last: "== 1"}
pack: {W: "G,F,C,KH,KW -> G,F/4,KH,(KW,C)/4,F%4,(KW,C)%4"}
epilogue: row
strided: [X, Y]
scratch: "16*KH*((KW*C+3)//4)"
path: "KH*KW*strides_0*strides_1 == 1"
# Four pixels and four channels at a time: words of their runs, of which an eighth takes twice as long where pixels lie at odd
# addresses, and results of a block; fewer `along` an image that is one long line. Where sums of a pixel
# with one run are shifted, the first word makes them. What the channels are scaled with is a table, four by four, unless
# it is one already. Channels that are left are stored one by one. Pixels at edges of the image (SIDES of a line, and ROWS of
# them) are copied by rows, all where taps lie apart, and word by word where runs are that short. `tiles` is called for the
# middle of a line, for fours of other pixels, and with `rest` for each four where channels are left; once where the image is
# one long line, which is done without it where all comes in fours. At the first tile, each of these is new code.
cycles:
  words: G * (QUADS := fours(N*OH*OW)) * (fours(F) * (KH * (RUN := words(KW*C)) + ragged_fours(C) * whole_eights(KH * RUN)) - whole_fours(F)
    * (SHIFTED := SHIFTS * BYTES * some(STEPS)) * max(several(RUN) * one(KH), (NARROW := one(RUN) * several(twos(KH)))))
  quads: G * QUADS
  blocks: G * (QUADS * (fours(F) * unless(ALONG := (LINE := one(KH*KW*strides_0*strides_1) * none(X_o1 + X_o2) * max(one(OH), none(X_s1 - OW*X_s2)))
    * SHIFTED * several(RUN) * unless(left_of_fours(C) + left_of_fours(F))) + some(STEPS) * ragged_fours(F))
    + BYTES * some(STEPS) * unless(SHIFTS * several(LOADS)) * whole_fours(F))
  along: G * QUADS * fours(F) * ALONG
  copied_runs: G * KH * ((APART := several(KW) * max(some(X_s2 - C), several(dilations_1))) * N*OH*OW*KW
    + unless(APART) * (EDGES := N * (OH * (SIDES := min(OW, steps(min(X_o2, pads_1), strides_1) + (OW == Y_n2) * steps(max(X_o2, pads_1) - pads_1, strides_1)))
    + (ROWS := min(OH, steps(min(X_o1, pads_0), strides_0) + (OH == Y_n1) * steps(max(X_o1, pads_0) - pads_0, strides_0)))
    * (OW - SIDES))))
  copied_words: G * KH * (NARROW * N*OH*OW + APART * N*OH*OW * KW * (words(C) + left_of_fours(C)) + unless(max(APART, NARROW)) * EDGES * (RUN + left_of_fours(KW*C)))
    - G * unless(max(APART, NARROW)) * N*OW * beyond(X_o1, strides_0) * RUN
  turns: some(N) + FIRST * (unless(ALONG) + some(max(APART, EDGES)) + ragged_fours(F))
    + G * (ragged_fours(F) * some(whole_fours(F) * STEPS) * QUADS + max(QUADS * max(ragged_fours(F), APART, NARROW),
    LINE * min(QUADS, unless(ALONG) + max(ragged_fours(C), ragged_fours(OH*OW))),
    unless(LINE) * (N*(OH - ROWS) * some(whole_fours(OW - SIDES)) + fours(N * ((OH - ROWS) * (SIDES + left_of_fours(OW - SIDES)) + ROWS*OW)))))
  behind: unless(max(SHIFTS, BYTES) * STEPS) * N*OH*OW * G*F * FUSED
--- */
#include "tilewright_kernel.h"
#include "tilewright_quads.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

#if STORE_SCALES || STORE_SHIFTS
TW_APART void tabulate(struct tw_quads *quads, int32_t *table, const int32_t *B, int channel, int count,
                       const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    TW_TABULATE(quads, table, &e, B, channel, count);
}
/* How the sums of channels become bytes. */
TW_INLINE void take(struct tw_quads *quads, int32_t *table, const int32_t *B, int channel, int count,
                    const struct Epilogue *epilogue) {
#if STORE_LISTS
    if (!B) {
        TW_TAKE_LISTS(quads, epilogue, channel, count);
        return;
    }
#endif
    tabulate(quads, table, B, channel, count, epilogue);
}
TW_APART void even_pixels(struct tw_even *even, const T *x) { TW_FOR_BYTES(x, tw_even)(even, STORE_SIGNED); }
/* Whole blocks of four channels for 4 * `fours` pixels that are equally far apart, as are their results; one run each. What
 * is known of them where they are called for need not be computed. */
TW_INLINE void even_line(const struct tw_quads *quads, const T *x, int next, void *y, int pitch, int fours, int count) {
    struct tw_even even = {.b = quads->runs.b,
                           .table = quads->table,
                           .blocks = count >> 2,
                           .y_next = 4 * pitch - count,
                           .x_next = 4 * next,
                           .x_end = x + fours * 4 * next,
                           .pitch = pitch,
                           .x = x,
                           .y = y,
                           .next = next,
                           .back = 4 - 3 * next,
                           .y_back = 4 - 3 * pitch,
                           .more = quads->more,
                           .shift = quads->last,
                           .factors = quads->factors};
    even_pixels(&even, x);
}
/* Whole blocks of four channels for any four pixels, and those behind them. */
TW_INLINE void tile(struct tw_quads *quads, const int single, const struct tw_line *line, const T *X) {
    for (int left = line->fours; left > 0; left--) {
        TW_FOR_BYTES(X, tw_quads)(quads, single, STORE_SHIFTS, STORE_SIGNED);
        for (int j = 0; j < 4 && left > 1; j++)
            quads->runs.a[j] = (const char *)quads->runs.a[j] + 4 * line->next;
        quads->y = (char *)quads->y + 4 * line->pitch;
    }
}
TW_APART void tiles(struct tw_quads *quads, const struct tw_line *line, const T *X, const int32_t *B, void *Y,
                    int channel, int count, const struct Epilogue *epilogue) {
    (void)B, (void)channel, (void)epilogue; /* all in the table */
    const T *const *a = (const T *const *)quads->runs.a;
    int single = quads->runs.rows == 1 && quads->more;
    quads->y = (char *)Y + line->at[0];
    for (int i = 0; i < 3; i++) {
        quads->apart[i] = line->at[i + 1] - line->at[0];
        if (STORE_SHIFTS &&
            (quads->apart[i] != (i + 1) * quads->apart[0] || a[i + 1] - a[0] != (i + 1) * (a[1] - a[0])))
            single = 0;
    }
    if (STORE_SHIFTS && single)
        even_line(quads, a[0], (int)(a[1] - a[0]), quads->y, quads->apart[0], line->fours, count);
    else if (single)
        tile(quads, 1, line, X);
    else
        tile(quads, 0, line, X);
}
#else
/* Whole blocks of four channels. */
TW_INLINE void tile(struct tw_runs *runs, const int single, const struct tw_line *line, const T *X, const int32_t *B,
                    void *Y, int channel, int count, const struct Epilogue *epilogue) {
    const struct Epilogue e = *epilogue;
    const int32_t none[4] = {0};
    const void *const weights = runs->b;
    int at0 = line->at[0], at1 = line->at[1], at2 = line->at[2], at3 = line->at[3];
    for (int i = 0; i < line->fours; i++) {
        const int32_t *bias = B ? B : none;
        runs->b = weights;
        for (int f = 0; f < count; f += 4) {
            int32_t sum[16];
            runs->bias = bias;
            TW_FOR_BYTES(X, tw_dot_runs)(runs, single, sum);
            if (STORE_STEPS > 2) { /* four times that code is more than a core's cache holds */
                const int at[4] = {at0 + f, at1 + f, at2 + f, at3 + f};
                int pixels = 4;
                TW_KEEP(pixels);
                for (int j = 0; j < pixels; j++)
                    STORE_4(&e, Y, sum[4 * j], sum[4 * j + 1], sum[4 * j + 2], sum[4 * j + 3], at[j], channel + f);
            } else {
                STORE_4(&e, Y, sum[0], sum[1], sum[2], sum[3], at0 + f, channel + f);
                STORE_4(&e, Y, sum[4], sum[5], sum[6], sum[7], at1 + f, channel + f);
                STORE_4(&e, Y, sum[8], sum[9], sum[10], sum[11], at2 + f, channel + f);
                STORE_4(&e, Y, sum[12], sum[13], sum[14], sum[15], at3 + f, channel + f);
            }
            bias += B ? 4 : 0;
        }
        if (i + 1 == line->fours)
            break;
        for (int j = 0; j < 4; j++)
            runs->a[j] = (const char *)runs->a[j] + 4 * line->next;
        at0 += 4 * line->pitch, at1 += 4 * line->pitch, at2 += 4 * line->pitch, at3 += 4 * line->pitch;
    }
}
#define take(quads, table, B, channel, count, epilogue) ((void)(table), (void)(count))
#define even_line(quads, x, next, y, pitch, fours, count) ((void)0)
TW_APART void tiles(struct tw_quads *quads, const struct tw_line *line, const T *X, const int32_t *B, void *Y,
                    int channel, int count, const struct Epilogue *epilogue) {
    struct tw_runs *const runs = &quads->runs;
    if (runs->rows == 1)
        tile(runs, 1, line, X, B, Y, channel, count, epilogue);
    else
        tile(runs, 0, line, X, B, Y, channel, count, epilogue);
}
#endif

/* Fewer pixels, each with a place of its own, or the last few channels. */
TW_APART void rest(struct tw_runs *runs, const T *X, const int32_t *B, void *Y, const int *at, int channel, int pixels,
                   int first, int count, const struct Epilogue *epilogue) {
    int32_t sum[16], out[64], bias[4];
    for (int f = first; f < count; f += 4) {
        for (int i = 0; i < 4; i++)
            bias[i] = B && f + i < count ? B[f + i] : 0;
        runs->bias = bias;
        TW_FOR_BYTES(X, tw_dot_runs)(runs, 0, sum);
        TW_UNROLL for (int i = 0; i < 16; i++) out[i / 4 * 16 + i % 4] = sum[i];
        for (int i = 0; i < pixels; i++)
            STORE(epilogue, Y, out + i * 16, at[i] + f, 0, channel + f, 1, tw_min(4, count - f));
    }
}

/* Pixels are read where they are, as one run of bytes for each row of the filter. Those whose filter reaches over the edge
 * of the image, or whose taps do not lie side by side, are copied first. */
static void conv2d_s8(const T *X, const int8_t *W, const int32_t *B, void *Y, int N, int G, int F, int OH, int OW,
                      int C, int KH, int KW, int X_n1, int X_n2, int X_s0, int X_s1, int X_s2, int Y_s0, int Y_s1,
                      int Y_s2, int strides_0, int strides_1, int pads_0, int pads_1, int dilations_0, int dilations_1,
                      int x_zero_point, void *scratch, const struct Epilogue *epilogue) {
    const int flat =
        KH * KW == 1 && strides_0 * strides_1 == 1 && X_n1 == OH && X_n2 == OW && pads_0 == 0 && pads_1 == 0;
    if (flat && X_s1 == OW * X_s2 && Y_s1 == OW * Y_s2) { /* pointwise: the image is one long line */
        OW *= OH;
        X_n2 = OW;
        OH = X_n1 = 1;
    }
    const int words = (KW * C + 3) / 4, patch_bytes = KH * words * 4, count = N * OH * OW;
    const int most = (STORE_SCALES || STORE_SHIFTS) && (B || !STORE_LISTS) ? TW_TABLED : F; /* channels at a time */
    /* pixels that are done at once */
    const int along = STORE_SHIFTS && flat && OH * N == 1 && C % 4 == 0 && F % 4 == 0 && words > 1 ? OW & ~3 : 0;
    int32_t table[2 * TW_TABLED];
    struct tw_quads quads;
    if (along == OW && G == 1) { /* all of them: no more code than that is fetched */
        quads.more = words - 1;
        for (int first = 0; first < F; first += most) {
            const int channels = tw_min(most, F - first);
            take(&quads, table, B ? B + first : B, first, channels, epilogue);
            quads.runs.b = W + first * patch_bytes;
            even_line(&quads, X, X_s2, (char *)Y + first, Y_s2, along / 4, channels);
        }
        return;
    }
    const struct tw_window_patch shape = {.x_col = X_s2,
                                          .x_row = X_s1,
                                          .C = C,
                                          .KH = KH,
                                          .KW = KW,
                                          .IH = X_n1,
                                          .IW = X_n2,
                                          .dilations_0 = dilations_0,
                                          .dilations_1 = dilations_1,
                                          .zero = x_zero_point,
                                          .words = words};
    const int side_by_side = (X_s2 == C && dilations_1 == 1) || KW == 1;
    const int next = strides_1 * X_s2, step = X_s1 * dilations_0 - words * 4;
    const int last_row = X_n1 - (KH - 1) * dilations_0, last_col = X_n2 - (KW - 1) * dilations_1;
    /* No run is read beyond X. */
    const T *end = X + (N - 1) * X_s0 + (last_row - 1) * X_s1 + (X_n2 - 1) * X_s2 + G * C - words * 4;
    char *patch = scratch;
    const int narrow = words == 1 && KH > 2; /* short runs are put together */
    struct tw_runs *const runs = &quads.runs;
    runs->words = narrow ? KH : words;
    runs->rows = narrow ? 1 : KH;
    quads.more = runs->words - 1;
    if (KW * C % 4) /* behind each row the weights are zero; the bytes just have to be there */
        tw_fill_words(patch, 0, patch_bytes);
    for (int g = 0, first = 0; g < G; first + most < F ? (first += most) : (first = 0, g++)) {
        const int channel = g * F + first, channels = tw_min(most, F - first);
        const int32_t *bias = B ? B + channel : B;
        const int8_t *weights = W + (g * ((F + 3) & ~3) + first) * patch_bytes;
        const T *image = X + g * C;
        take(&quads, table, bias, channel, channels, epilogue);
        if (along) {
            runs->b = weights;
            even_line(&quads, image, X_s2, (char *)Y + channel, Y_s2, along / 4, channels);
        }
        for (int pixel = along, done = 0, oh = 0, ow = along, out = channel; pixel < count; pixel += done) {
            struct tw_line line;
            line.fours = 0;
            line.next = next;
            line.pitch = Y_s2;
            runs->b = weights;
            for (done = 0; done < 4 && pixel + done < count; done++, ow++) {
                if (ow == OW) {
                    ow = 0;
                    out += Y_s1;
                    if (++oh == OH) {
                        oh = 0;
                        image += X_s0;
                        out += Y_s0 - OH * Y_s1;
                    }
                }
                const int ih = oh * strides_0 - pads_0, iw = ow * strides_1 - pads_1;
                const T *x = image + ih * X_s1 + iw * X_s2;
                line.at[done] = out + ow * Y_s2;
                if (side_by_side && ih >= 0 && iw >= 0 && ih < last_row && iw < last_col && x <= end) {
                    if (narrow) {
                        uint32_t *to = (uint32_t *)(void *)(patch + done * patch_bytes);
                        runs->a[done] = to;
                        runs->step[done] = 0;
                        for (int i = 0; i < KH; i++)
                            TW_LOAD_STRIDED(to[i], x, X_s1 * dilations_0);
                        continue;
                    }
                    runs->a[done] = x;
                    runs->step[done] = step;
                    if (done || OW - ow < 4 || iw + 3 * strides_1 >= last_col || x + 3 * next > end || channels < 4)
                        continue;
                    /* as many as there are in the middle of the line */
                    const int inside = tw_min((last_col - 1 - iw) / strides_1, (int)(end - x) / next) + 1;
                    line.fours = channels % 4 ? 1 : tw_min(inside, OW - ow) / 4;
                    for (int i = 1; i < 4; i++) {
                        line.at[i] = line.at[0] + i * Y_s2;
                        runs->a[i] = x + i * next;
                        runs->step[i] = step;
                    }
                    done = 4 * line.fours;
                    ow += done;
                    break;
                }
                runs->a[done] = patch + done * patch_bytes;
                runs->step[done] = 0;
                tw_gather_patch(&shape, image, ih, iw, patch + done * patch_bytes);
            }
            if (done == 4 || (STORE_AGAIN && done < 4))
                line.fours = 1;
            for (int i = done; i < 4; i++) { /* there are always four */
                line.at[i] = line.at[i - 1];
                runs->a[i] = runs->a[i - 1];
                runs->step[i] = runs->step[i - 1];
            }
            const int whole = line.fours ? channels & ~3 : 0;
            if (whole)
                tiles(&quads, &line, X, bias, Y, channel, whole, epilogue);
            runs->b = weights + whole * patch_bytes;
            if (whole < channels)
                rest(runs, X, bias, Y, line.at, channel, tw_min(done, 4), whole, channels, epilogue);
        }
    }
}
