/* A firmware with a network in it: looks at a picture again and again, and prints a line for each. */
#include "board.h"
#include "tiny.h"

#define ROUNDS 3
#define PIXELS (3 * 32 * 32)
#define CLASSES 10

static float picture[PIXELS], scores[CLASSES];

/* In place of a camera: stripes that move. */
static void look(int round) {
    for (int i = 0; i < PIXELS; i++)
        picture[i] = (float)((i * 7 + round * 31) % 256) * (1.0f / 128) - 1.0f;
}

static void print_number(uint32_t value) {
    char text[11], *digit = text + 10;
    *digit = 0;
    do
        *--digit = (char)('0' + value % 10);
    while (value /= 10);
    board_print(digit);
}

int main(void) {
    const void *const inputs[] = {picture};
    void *const outputs[] = {scores};
    for (int round = 0; round < ROUNDS; round++) {
        look(round);
        const uint32_t start = board_ticks();
        tiny_run(inputs, outputs);
        const uint32_t taken = board_ticks() - start;
        int best = 0;
        for (int i = 1; i < CLASSES; i++)
            best = scores[i] > scores[best] ? i : best;
        board_print("inference ");
        print_number((uint32_t)round);
        board_print(": class ");
        print_number((uint32_t)best);
        board_print(", score ");
        print_number((uint32_t)(scores[best] * 1000.0f + 0.5f));
        board_print("/1000, ");
        print_number(taken);
        board_print(" ticks\n");
    }
    board_print("done\n");
    return 0;
}
