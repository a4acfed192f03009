/* Runs a network on raw files: main IN0 IN1 ... OUT0 OUT1 ... [--repeat N]

   Inputs are read and outputs written as plain little-endian arrays, in the order of the descriptors. With --repeat, the
   inference is run N more times and the nanoseconds of the fastest one are printed. */
#include "@NAME@.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *buffer_of(size_t bytes) {
    void *buffer = malloc(bytes ? bytes : 1);
    if (!buffer) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return buffer;
}

static void transfer(const char *path, const char *mode, void *buffer, size_t bytes) {
    FILE *file = fopen(path, mode);
    size_t done = 0;
    if (file) {
        done = mode[0] == 'r' ? fread(buffer, 1, bytes, file) : fwrite(buffer, 1, bytes, file);
        fclose(file);
    }
    if (!file || done != bytes) {
        fprintf(stderr, "cannot %s %zu bytes: %s\n", mode[0] == 'r' ? "read" : "write", bytes, path);
        exit(1);
    }
}

static double nanoseconds(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv) {
    const void *inputs[@UPPER@_INPUTS + 1] = {0};
    void *outputs[@UPPER@_OUTPUTS + 1] = {0};
    const int files = @UPPER@_INPUTS + @UPPER@_OUTPUTS;
    if (argc < files + 1) {
        fprintf(stderr, "usage: %s (%d input files) (%d output files) [--repeat N]\n", argv[0], @UPPER@_INPUTS,
                @UPPER@_OUTPUTS);
        return 1;
    }
    for (int i = 0; i < @UPPER@_INPUTS; i++) {
        void *buffer = buffer_of(@NAME@_inputs[i].bytes);
        transfer(argv[1 + i], "rb", buffer, @NAME@_inputs[i].bytes);
        inputs[i] = buffer;
    }
    for (int i = 0; i < @UPPER@_OUTPUTS; i++) outputs[i] = buffer_of(@NAME@_outputs[i].bytes);
    @NAME@_run(inputs, outputs);
    for (int i = 0; i < @UPPER@_OUTPUTS; i++)
        transfer(argv[1 + @UPPER@_INPUTS + i], "wb", outputs[i], @NAME@_outputs[i].bytes);
    if (argc > files + 2 && strcmp(argv[files + 1], "--repeat") == 0) {
        double best = 1e300;
        for (int n = atoi(argv[files + 2]); n > 0; n--) {
            const double start = nanoseconds();
            @NAME@_run(inputs, outputs);
            const double taken = nanoseconds() - start;
            best = taken < best ? taken : best;
        }
        printf("%.0f\n", best);
    }
    for (int i = 0; i < @UPPER@_INPUTS; i++) free((void *)(uintptr_t)inputs[i]);
    for (int i = 0; i < @UPPER@_OUTPUTS; i++) free(outputs[i]);
    return 0;
}
