/* ---
op: Split
types: {input: T, outputs0: T, outputs1: T}
T: [int8, uint8, int16, int32, float32]
whole: [AXIS]
# Two runs of words for each index in front of the axis, then bytes one by one; where cores share runs, each has some words
# of all. A run that is no whole words leaves the next one unaligned, where it is read and where it is written.
cycles:
  words: OUTER * ((FIRST_WORDS := steps(words(FIRST := INNER * input_bytes * outputs0_nAXIS), PARTS))
    + (SECOND_WORDS := steps(words(SECOND := INNER * input_bytes * outputs1_nAXIS), PARTS)))
  unaligned: OUTER * (SECOND_WORDS * ragged_fours(FIRST) + several(OUTER) * (SECOND_WORDS * ragged_fours(SECOND)
    + FIRST_WORDS * (ragged_fours(FIRST) + ragged_fours(FIRST + SECOND))))
  single: OUTER * one(PARTS) * (left_of_fours(FIRST) + left_of_fours(SECOND))
  rows: OUTER
  call: some(OUTER)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Bytes of a run that a core begins with, and how many it has: words, and for the last what is left. */
struct split_part {
    int from, bytes;
};
static inline struct split_part split_part(int bytes, int PART, int PARTS) {
    const int part = (bytes + 4 * PARTS - 1) / (4 * PARTS) * 4, from = tw_min(PART * part, bytes);
    return (struct split_part){from, tw_min(part, bytes - from)};
}

static void split(const T *input, T *outputs0, T *outputs1, int OUTER, int INNER, int outputs0_nAXIS,
                  int outputs1_nAXIS, int PART, int PARTS) {
    const int first = INNER * outputs0_nAXIS, second = INNER * outputs1_nAXIS;
    const struct split_part one = split_part(first * (int)sizeof(T), PART, PARTS),
                            other = split_part(second * (int)sizeof(T), PART, PARTS);
    for (int outer = 0; outer < OUTER; outer++, outputs0 += first, outputs1 += second) {
        tw_copy_bytes((char *)outputs0 + one.from, (const char *)input + one.from, one.bytes);
        input += first;
        tw_copy_bytes((char *)outputs1 + other.from, (const char *)input + other.from, other.bytes);
        input += second;
    }
}
