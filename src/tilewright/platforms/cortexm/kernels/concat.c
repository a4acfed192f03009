/* ---
op: Concat
types: {inputs0: T, inputs1: T, concat_result: T}
T: [int8, uint8, bool, int16, uint16, float16, int32, uint32, float32]
when: {OUTER: ">= 2", inputs1_nAXIS: ">= 1"}
whole: [AXIS]
cycles:
  words: OUTER * words(AXIS*INNER*ELEMENT_BYTES)
  bytes: OUTER * ((FIRST_LEFT := left_of_fours(inputs0_nAXIS*INNER*ELEMENT_BYTES)) + (SECOND_LEFT := left_of_fours(inputs1_nAXIS*INNER*ELEMENT_BYTES)))
  unaligned: OUTER * some(FIRST_LEFT + SECOND_LEFT) * AXIS*INNER*ELEMENT_BYTES # where words have to be aligned
  runs: OUTER
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Two runs of bytes for each index in front of the axis: a cache of keys or values with those of the next token. */
static void concat(const T *inputs0, const T *inputs1, T *concat_result, int OUTER, int INNER, int inputs0_nAXIS,
                   int inputs1_nAXIS) {
    const int first = inputs0_nAXIS * INNER, second = inputs1_nAXIS * INNER;
    for (int outer = 0; outer < OUTER; outer++) {
        tw_copy_bytes(concat_result, inputs0, first * (int)sizeof(T));
        tw_copy_bytes(concat_result + first, inputs1, second * (int)sizeof(T));
        inputs0 += first;
        inputs1 += second;
        concat_result += first + second;
    }
}
