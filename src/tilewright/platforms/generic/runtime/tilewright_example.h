/* What the example programs share: buffers, raw files and the time. */
#ifndef TILEWRIGHT_EXAMPLE_H
#define TILEWRIGHT_EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline void *buffer_of(size_t bytes) {
    void *buffer = calloc(bytes ? bytes : 1, 1);
    if (!buffer) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return buffer;
}

static inline void transfer(const char *path, const char *mode, void *buffer, size_t bytes) {
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

static inline double nanoseconds(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

#endif
