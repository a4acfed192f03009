/* Prints, and ends with a status. */
#include "chip.h"

static void print(const char *text) {
    while (*text)
        REGISTER(0x1A10F000) = (uint32_t)*text++;
}

void tw_cluster_main(uint32_t core) { (void)core; }

int main(void) {
    print("hello\n");
    return STATUS;
}
