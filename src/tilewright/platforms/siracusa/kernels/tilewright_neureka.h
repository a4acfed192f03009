/* Jobs of NEUREKA, the accelerator for convolutions. The driver describes a job, starts it and goes on; the accelerator takes
 * a second one while it works on the first. Its sums are 32 bits wide, its weights single bits, packed when the network is compiled. */
#ifndef TILEWRIGHT_NEUREKA_H
#define TILEWRIGHT_NEUREKA_H

#include "tilewright_chip.h"
#include "tilewright_core.h"

#define TW_NEUREKA 0x10201000u
#define TW_NEUREKA_EVENT (1u << 12)
/* How many jobs have been started. */
extern uint32_t tw_neureka_jobs;
#define TW_WEIGHT_MEMORY 0x10400000u
#define TW_WEIGHT_MEMORY_BYTES 0x800000u

/* Bits of the register that says what is computed. */
#define TW_NEUREKA_WEIGHT_BITS(bits) ((uint32_t)(bits) - 1u)
#define TW_NEUREKA_QUANTISE (1u << 4)
#define TW_NEUREKA_3X3 (0u << 5)
#define TW_NEUREKA_DEPTHWISE (1u << 5)
#define TW_NEUREKA_1X1 (2u << 5)
#define TW_NEUREKA_IN_WEIGHT_MEMORY (1u << 9)
#define TW_NEUREKA_PREFETCH (1u << 10)
#define TW_NEUREKA_SCALES_OF_32_BITS (2u << 12)
#define TW_NEUREKA_SHIFT(bits) ((uint32_t)(bits) << 16)
#define TW_NEUREKA_SUMS (2u << 21)
#define TW_NEUREKA_NEGATIVE_RESULTS (1u << 23)
#define TW_NEUREKA_BIAS (1u << 25)
#define TW_NEUREKA_SIGNED_INPUT (1u << 26)

/* The lowest weight of 8 bits. */
#define TW_NEUREKA_LOWEST (-128)

/* What a job reads and writes. Sizes are those of the result, strides are in bytes. */
struct tw_neureka_job {
    const void *input, *weights;
    void *output;
    const void *scale, *bias; /* for each channel of the result, where it is quantised */
    uint32_t input_pixel, input_row, output_pixel, output_row;
    int height, width, inputs, outputs;
    int top, left, bottom, right; /* rows and columns of padding */
    int padding;                  /* its value */
    int low;                      /* of weights: their bits count from it */
    uint32_t mode;
};

static inline uint32_t tw_neureka_pair(int high, int low) { return (uint32_t)high << 16 | ((uint32_t)low & 0xffffu); }

/* What is left for the last of some tiles. */
static inline int tw_neureka_rest(int size, int tile) { return size - (size - 1) / tile * tile; }

/* Kernels and what they call are part of the code that calls them: most of a job is known when the network is compiled. */
#define TW_IN_PLACE inline __attribute__((always_inline))

/* Starts the job that was described. */
static TW_IN_PLACE void tw_neureka_go(void) {
    tw_neureka_jobs++;
    TW_REGISTER(TW_NEUREKA) = 0;
}

static TW_IN_PLACE void tw_neureka_describe(const struct tw_neureka_job *job, uint32_t kind) {
    const uint32_t bits = (job->mode & 7u) + 1u;
    const int tile_in = kind == TW_NEUREKA_1X1 ? 32 : 28, tile_out = kind == TW_NEUREKA_DEPTHWISE ? 28 : 32;
    const int border = kind == TW_NEUREKA_1X1 ? 0 : 2;
    const int tiles_in = (job->inputs + tile_in - 1) / tile_in, rest_h = tw_neureka_rest(job->height, 6),
              rest_w = tw_neureka_rest(job->width, 6);
    const uint32_t here = (uint32_t)(uintptr_t)job->weights - TW_WEIGHT_MEMORY;
    const int in_weight_memory = here < TW_WEIGHT_MEMORY_BYTES;
    const uint32_t weights_of_channel = kind == TW_NEUREKA_1X1   ? 32u * (uint32_t)tiles_in
                                        : kind == TW_NEUREKA_3X3 ? 32u * bits * (uint32_t)tiles_in
                                                                 : 0u;
    volatile uint32_t *const r = &TW_REGISTER(TW_NEUREKA + 0x20);
    while ((int32_t)TW_REGISTER(TW_NEUREKA + 4) < 0) { /* until fewer than two jobs are on their way */
    }
    r[0] = in_weight_memory ? here : (uint32_t)(uintptr_t)job->weights;
    r[1] =
        (uint32_t)(uintptr_t)job->input - (uint32_t)job->top * job->input_row - (uint32_t)job->left * job->input_pixel;
    r[2] = (uint32_t)(uintptr_t)job->output;
    r[3] = (uint32_t)(uintptr_t)job->scale;
    r[4] = 0;
    r[5] = (uint32_t)(uintptr_t)job->bias;
    r[6] = job->input_pixel;
    r[7] = job->input_row;
    r[8] = 0;
    r[9] = 32;
    r[10] = job->output_pixel;
    r[11] = job->output_row;
    r[12] = 32;
    r[13] = weights_of_channel;
    r[14] = 0;
    r[15] = tw_neureka_pair(tw_neureka_rest(job->outputs, tile_out), tw_neureka_rest(job->inputs, tile_in));
    r[16] = tw_neureka_pair(rest_h, rest_w);
    r[17] = tw_neureka_pair(rest_h + border - job->bottom, rest_w + border - job->right);
    r[18] = tw_neureka_pair((job->outputs + tile_out - 1) / tile_out, tiles_in);
    r[19] = tw_neureka_pair((job->height + 5) / 6, (job->width + 5) / 6);
    r[20] = (uint32_t)job->top << 28 | (uint32_t)job->right << 24 | (uint32_t)job->bottom << 20 |
            (uint32_t)job->left << 16 | ((uint32_t)job->padding & 0xffffu);
    r[21] = (uint32_t)job->low;
    r[22] = 0;
    r[23] = job->mode | kind | TW_NEUREKA_PREFETCH | (in_weight_memory ? TW_NEUREKA_IN_WEIGHT_MEMORY : 0u);
}

/* What a job gives: sums, or those scaled back to 8 bits. */
#define TW_NEUREKA_GIVES_SUMS (TW_NEUREKA_SUMS | TW_NEUREKA_NEGATIVE_RESULTS)
#define TW_NEUREKA_GIVES_BYTES(shift, has_sign)                                                                        \
    (TW_NEUREKA_QUANTISE | TW_NEUREKA_SCALES_OF_32_BITS | TW_NEUREKA_BIAS | TW_NEUREKA_SHIFT(shift) |                  \
     ((has_sign) ? TW_NEUREKA_NEGATIVE_RESULTS : 0u))
/* Whether an element type has negative values. */
#define TW_NEUREKA_INPUT(T) (((T) - 1 < 0) ? TW_NEUREKA_SIGNED_INPUT : 0u)

/* Rows or columns of padding behind an image of `extent`, which windows of three make `size` results of. */
#define TW_NEUREKA_BEHIND(size, before, extent) ((size) + 2 - (before) - (extent))

/* The job of a 3x3 convolution of an image, each pixel of which has `inputs` bytes. */
static TW_IN_PLACE void tw_neureka_image(struct tw_neureka_job *job, int rows, int columns) {
    job->input_pixel = (uint32_t)job->inputs;
    job->input_row = (uint32_t)(job->inputs * columns);
    job->output_pixel = (uint32_t)job->outputs * (job->mode & TW_NEUREKA_SUMS ? 4u : 1u);
    job->output_row = job->output_pixel * (uint32_t)job->width;
    job->bottom = TW_NEUREKA_BEHIND(job->height, job->top, rows);
    job->right = TW_NEUREKA_BEHIND(job->width, job->left, columns);
}

/* A row of numbers is a window of 3x3 pixels: pixels of this many channels follow each other in three rows that begin
 * equally far apart and end where it does. Rows may overlap; what is in two of them has weights of zero in the second. */
#define TW_NEUREKA_CHANNELS(inputs) (((inputs) + 8) / 9 + ((inputs) - ((inputs) + 8) / 9) % 2)
#define TW_NEUREKA_ROW(inputs) (((inputs) - 3 * TW_NEUREKA_CHANNELS(inputs)) / 2)

/* The job of a product with such a row. Networks have many of them, so it is a function: code that is called again is in
 * a cache, and code in its place is not. */
static __attribute__((noinline, unused)) void tw_neureka_row(const void *input, const void *weights, void *output,
                                                             int channels, int row, int outputs, int low, uint32_t mode,
                                                             const void *scale, const void *bias) {
    const struct tw_neureka_job job = {.input = input,
                                       .weights = weights,
                                       .output = output,
                                       .scale = scale,
                                       .bias = bias,
                                       .input_pixel = (uint32_t)channels,
                                       .input_row = (uint32_t)row,
                                       .height = 1,
                                       .width = 1,
                                       .inputs = channels,
                                       .outputs = outputs,
                                       .low = low,
                                       .mode = mode};
    tw_neureka_describe(&job, TW_NEUREKA_3X3);
}

/* Fewer inputs are a window of one column of three pixels: to its left and right there are two columns of zeros, so that
 * the same weights give three results, each with one column of its taps. Both inputs and results are in thirds of this
 * size that begin equally far apart, and may overlap; results that are in two of them are computed twice. */
#define TW_NEUREKA_THIRD(size) (((size) + 2) / 3 + ((size) - ((size) + 2) / 3) % 2)

static __attribute__((noinline, unused)) void tw_neureka_columns(const void *input, const void *weights, void *output,
                                                                 int inputs, int outputs, int low, uint32_t mode) {
    const int channels = TW_NEUREKA_THIRD(inputs), results = TW_NEUREKA_THIRD(outputs);
    const struct tw_neureka_job job = {.input = input,
                                       .weights = weights,
                                       .output = output,
                                       .input_row = (uint32_t)(inputs - channels) / 2,
                                       .output_pixel = (uint32_t)(outputs - results) / 2 * 4,
                                       .height = 1,
                                       .width = 3,
                                       .inputs = channels,
                                       .outputs = results,
                                       .left = 2,
                                       .right = 2,
                                       .low = low,
                                       .mode = mode};
    tw_neureka_describe(&job, TW_NEUREKA_3X3);
}

/* How pixels are cut into jobs. Those of rows that follow each other (`step` 1) may be taken in rows of any width: the
 * array holds 6 x 6 of them, so they are taken six at a time, and what is left over in a second job, unless another width
 * needs fewer tiles. Headers of kernels name these macros, so that prices are those of the same jobs. */
#define TW_NEUREKA_TILES(pixels, width) (((pixels) / (width) + 5) / 6 + ((pixels) % (width) != 0))
#define TW_NEUREKA_RANK(pixels, width) (TW_NEUREKA_TILES(pixels, width) * 8 + 6 - (width))
#define TW_NEUREKA_BEST(pixels)                                                                                        \
    tw_min(tw_min(TW_NEUREKA_RANK(pixels, 6), TW_NEUREKA_RANK(pixels, 5)),                                             \
           tw_min(TW_NEUREKA_RANK(pixels, 4), TW_NEUREKA_RANK(pixels, 3)))
#define TW_NEUREKA_ACROSS(pixels) tw_min(6 - TW_NEUREKA_BEST(pixels) % 8, pixels)
#define TW_NEUREKA_WIDTH(height, width, step)                                                                          \
    tw_max(((step) > 1) * (width) + ((step) == 1) * TW_NEUREKA_ACROSS((height) * (width)), 1)
#define TW_NEUREKA_HEIGHT(height, width, step) ((height) * (width) / TW_NEUREKA_WIDTH(height, width, step))
#define TW_NEUREKA_REST(height, width, step) ((height) * (width) % TW_NEUREKA_WIDTH(height, width, step))

/* A 1x1 convolution of pixels that are `pixel` bytes apart, in rows that are `row` bytes apart. */
static TW_IN_PLACE void tw_neureka_points(struct tw_neureka_job *job, int height, int width, int step, int pixel,
                                          int row) {
    const int rest = TW_NEUREKA_REST(height, width, step);
    job->width = TW_NEUREKA_WIDTH(height, width, step);
    job->height = TW_NEUREKA_HEIGHT(height, width, step);
    job->input_pixel = (uint32_t)pixel;
    job->input_row = (uint32_t)(step == 1 ? pixel * job->width : row);
    job->output_pixel = (uint32_t)job->outputs * (job->mode & TW_NEUREKA_SUMS ? 4u : 1u);
    job->output_row = job->output_pixel * (uint32_t)job->width;
    tw_neureka_describe(job, TW_NEUREKA_1X1);
    if (rest == 0)
        return;
    tw_neureka_go();
    job->input = (const char *)job->input + job->input_row * (uint32_t)job->height;
    job->output = (char *)job->output + job->output_row * (uint32_t)job->height;
    job->width = rest;
    job->height = 1;
    tw_neureka_describe(job, TW_NEUREKA_1X1);
}

#endif
