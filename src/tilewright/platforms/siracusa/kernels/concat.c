/* ---
op: Concat
types: {inputs0: T, inputs1: T, concat_result: T}
T: [int8, uint8, bool, int16, uint16, float16, int32, uint32, float32]
when: {inputs1_nAXIS: ">= 0", OUTER: "OUTER >= 2 and AXIS*INNER*ELEMENT_BYTES <= 8192"}
whole: [AXIS]
within: [inputs0, inputs1]
# Two runs of words for each index in front of the axis, then bytes one by one. A run that is no whole words leaves the
# next one unaligned, where it is read and where it is written; cores then meet more often.
cycles:
  words: (WORDS := OUTER * ((FIRST_WORDS := whole_fours(FIRST_RUN := INNER * ELEMENT_BYTES * inputs0_nAXIS))
    + (SECOND_WORDS := whole_fours(SECOND_RUN := INNER * ELEMENT_BYTES * inputs1_nAXIS))))
  meet: (SHARED := some(OTHERS) * one(PARTS)) * WORDS
  unaligned: (UNALIGNED := OUTER * (FIRST_WORDS * (ragged_fours(FIRST_RUN) + ragged_fours(FIRST_RUN + SECOND_RUN))
    + SECOND_WORDS * (ragged_fours(SECOND_RUN) + max(ragged_fours(FIRST_RUN), ragged_fours(FIRST_RUN + SECOND_RUN)))))
  meet_unaligned: SHARED * UNALIGNED
  single: OUTER * (left_of_fours(FIRST_RUN) + left_of_fours(SECOND_RUN))
  rows: OUTER
  call: some(OUTER)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Two runs of bytes for each index in front of the axis: a cache of keys or values with those of the next token. One that
 * is there already is empty. */
static void concat(const T *inputs0, const T *inputs1, T *concat_result, int OUTER, int INNER, int inputs0_nAXIS,
                   int inputs1_nAXIS, int concat_result_sOUTER) {
    const int first = inputs0_nAXIS * INNER, second = inputs1_nAXIS * INNER;
    for (int outer = 0; outer < OUTER; outer++) {
        tw_copy_bytes(concat_result, inputs0, first * (int)sizeof(T));
        tw_copy_bytes(concat_result + first, inputs1, second * (int)sizeof(T));
        inputs0 += first;
        inputs1 += second;
        concat_result += concat_result_sOUTER;
    }
}
