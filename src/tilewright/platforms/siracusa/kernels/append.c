/* ---
op: Append
types: {X: T, R: T, P: int32, Y: T}
T: [int8, uint8, bool]
when: {rank: "== 3", along: ">= 1", row_bytes: "row_bytes >= 8 and row_bytes % 4 == 0"}      # shorter ones are better off in a loop
strided: [X, R, Y]
# Rows of the last axis, each of which is a run of one operand, or three runs where it is that axis that grows.
cycles:
  words: (ROWS := steps(D0 * D1, PARTS)) * whole_fours((RUN := D2 * R_bytes))
  unaligned: ROWS * ragged_fours(RUN) * whole_fours(RUN)
  single: ROWS * left_of_fours(RUN)
  rows: ROWS
  runs: ROWS * (along > 1)
  call: some(D0 * D1)
--- */
#include "tilewright_kernel.h"

#ifndef TW_GENERATED
typedef int8_t T;
#endif

/* Elements `from` to `end` of a tile. */
static inline void append_run(T *to, const T *row, int from, int end) {
    if (end > from)
        tw_copy_bytes(to + from, row + from, (end - from) * (int)sizeof(T));
}

static void append(const T *X, const T *R, const int32_t *P, T *Y, int D0, int D1, int D2, int D1_from, int D2_from,
                   int X_s0, int X_s1, int R_s0, int R_s1, int Y_s0, int Y_s1, int along, int count, int least,
                   int last, int PART, int PARTS) {
    const int place = tw_max(least, tw_min(*P, last)), first = place - (along == 1 ? D1_from : D2_from);
    const int rows = D0 * D1, share = (rows + PARTS - 1) / PARTS, end = tw_min(PART * share + share, rows);
    for (int row = PART * share, i = row / tw_max(D1, 1), j = row - i * D1; row < end; row++, j++) {
        if (j == D1)
            i++, j = 0;
        T *const y = Y + i * Y_s0 + j * Y_s1;
        const T *const x = X + i * X_s0 + j * X_s1;
        if (along == 1) {
            const int new = j >= first && j < first + count;
            append_run(y, new ? R + i * R_s0 + (j - first) * R_s1 : x, 0, D2);
        } else {
            const int begin = tw_min(tw_max(first, 0), D2), stop = tw_min(tw_max(first + count, 0), D2);
            append_run(y, x, 0, begin);
            append_run(y, R + i * R_s0 + j * R_s1 - first, begin, stop);
            append_run(y, x, stop, D2);
        }
    }
}
