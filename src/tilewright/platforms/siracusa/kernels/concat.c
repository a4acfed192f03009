/* ---
op: Concat
types: {inputs0: T, inputs1: T, concat_result: T}
T: [int8, uint8, bool, int16, uint16, float16, int32, uint32, float32]
when: {inputs1_nAXIS: ">= 0", OUTER: "OUTER >= 2 and AXIS*INNER*ELEMENT_BYTES <= 8192"}
whole: [AXIS]
within: [inputs0, inputs1]
# Two runs of words for each index in front of the axis, then bytes one by one; one run where the first operand lies in
# place. A run that is no whole words leaves the next one unaligned, where it is read and where it is written; cores then
# meet more often.
cycles:
  words: (WORDS := OUTER * ((SECOND_WORDS := whole_fours(SECOND_RUN := min((UNIT := INNER * ELEMENT_BYTES) * AXIS,
    UNIT * inputs1_nAXIS))) + (FIRST_WORDS := whole_fours(FIRST_RUN := UNIT * AXIS - SECOND_RUN))))
  meet: (SHARED := some(OTHERS) * one(PARTS)) * WORDS
  unaligned: (UNALIGNED := OUTER * (FIRST_WORDS * (ragged_fours(UNIT * inputs0_nAXIS)
    + (ROW := ragged_fours(UNIT * (inputs0_nAXIS + inputs1_nAXIS))))
    + SECOND_WORDS * (ragged_fours(UNIT * inputs1_nAXIS) + max(ROW, ragged_fours(UNIT * inputs0_nAXIS)))))
  meet_unaligned: SHARED * UNALIGNED
  single: OUTER * (left_of_fours(FIRST_RUN) + left_of_fours(SECOND_RUN))
  runs: OUTER * (some(FIRST_WORDS) + some(SECOND_WORDS))
  rows: OUTER
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
