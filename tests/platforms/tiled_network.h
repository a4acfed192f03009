/* A network as generated code presents it: y = 3 * x in tiles, double buffered, on several cores. */
#ifndef NETWORK_H
#define NETWORK_H

#include <stddef.h>
#include <stdint.h>

#define NETWORK_INPUTS 1
#define NETWORK_OUTPUTS 1
#define NETWORK_MEMORIES 2

struct tilewright_tensor {
    const char *name;
    const char *type;
    int rank;
    int shape[8];
    size_t bytes;
};
struct tilewright_memory {
    const char *name;
    size_t bytes;
};

extern const struct tilewright_tensor network_inputs[], network_outputs[];
extern const struct tilewright_memory network_memory[];

void network_run_in(unsigned char *const *memory, const void *const *inputs, void *const *outputs);

#endif
