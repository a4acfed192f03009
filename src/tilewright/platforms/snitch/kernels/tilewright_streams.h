/* Streams and loops of the FPU. While streams are on, reading ft0 and ft1 takes the next 64 bits of streams 0 and 1; so all
 * that is computed meanwhile is assembler text. A loop of the FPU (frep) is issued once, and the core goes on beside it. */
#ifndef TILEWRIGHT_STREAMS_H
#define TILEWRIGHT_STREAMS_H

#include "tilewright_chip.h"
#include "tilewright_kernel.h"

/* Writes a word of a stream's description (scfgwi): how often each element is given, and of up to four loops, the innermost
 * first, how often they turn and by how many bytes a turn moves on from where the loops inside of it have come to. */
#define TW_STREAM_WORD(stream, word, value)                                                                            \
    __asm__ volatile(".insn r 0x2B, 2, %1, x0, %0, x" #stream::"r"(value), "i"(word) : "memory")
#define TW_STREAM_TIMES(stream, times) TW_STREAM_WORD(stream, 1, (times) - 1)
#define TW_STREAM_LOOP(stream, loop, turns, bytes)                                                                     \
    do {                                                                                                               \
        TW_STREAM_WORD(stream, 2 + (loop), (turns) - 1);                                                               \
        TW_STREAM_WORD(stream, 6 + (loop), (bytes));                                                                   \
    } while (0)
/* Starts to read or to write with so many loops. */
#define TW_STREAM_READ(stream, loops, address) TW_STREAM_WORD(stream, 23 + (loops), (address))
#define TW_STREAM_WRITE(stream, loops, address) TW_STREAM_WORD(stream, 27 + (loops), (address))
/* Waits until all is written, behind the instructions that do. */
#define TW_STREAM_AWAIT(stream)                                                                                        \
    do {                                                                                                               \
        int32_t status_;                                                                                               \
        do                                                                                                             \
            __asm__ volatile(".insn i 0x2B, 1, %0, x0, " #stream : "=r"(status_)::"memory");                           \
        while (status_ >= 0);                                                                                          \
    } while (0)

/* Streams do not wait for stores before them. */
TW_INLINE void tw_stream_fence(void) {
    tw_fpu_fence();
    __asm__ volatile("fence" ::: "memory");
}

#define TW_STREAMS_ON "csrsi 0x7C0, 1\n"
#define TW_STREAMS_OFF "csrci 0x7C0, 1\n"
#define TW_STREAM_REGISTERS "ft0", "ft1", "ft2"
/* One or eight instructions behind it run once more than the register says. */
#define TW_FREP_1(register) ".insn i 0x0B, 0, x1, " register ", 0\n"
#define TW_FREP_8(register) ".insn i 0x0B, 0, x1, " register ", 7\n"

/* Numbers of two lanes of 32 bits, and of four of 16 that are added up in two of 32. */
#define TW_VFMUL_S(d) ".insn r 0x33, 0, 0x43, " d ", ft0, ft1\n"
#define TW_VFMAC_S(d) ".insn r 0x33, 0, 0x48, " d ", ft0, ft1\n"
#define TW_VFDOTPEX_S_H(d) ".insn r 0x33, 0, 0x4B, " d ", ft0, ft1\n"
#define TW_FMUL_D(d) "fmul.d " d ", ft0, ft1\n"
#define TW_FMADD_D(d) "fmadd.d " d ", ft0, ft1, " d "\n"
#define TW_ZERO_D(d) "fmv.d " d ", ft11\n"
/* An instruction for each of eight sums. */
#define TW_EIGHT(INSN) INSN("ft3") INSN("ft4") INSN("ft5") INSN("ft6") INSN("ft7") INSN("fa0") INSN("fa1") INSN("fa2")
#define TW_EIGHT_SUMS "ft3", "ft4", "ft5", "ft6", "ft7", "fa0", "fa1", "fa2"
/* Sums of products of both streams: the first product of each, and as many more as `more` says and one, if not negative. */
#define TW_SUMS(MUL, MAC) TW_EIGHT(MUL) "bltz %[more], 2f\n" TW_FREP_8("%[more]") TW_EIGHT(MAC) "2:\n"

/* Loads or stores of eight sums, `bytes` apart. */
#define TW_AT(INSN, f, i, bytes, p) INSN " " f ", " #i "*" bytes "(" p ")\n"
#define TW_SUMS_AT(INSN, bytes, p)                                                                                     \
    TW_AT(INSN, "ft3", 0, bytes, p)                                                                                    \
    TW_AT(INSN, "ft4", 1, bytes, p)                                                                                    \
    TW_AT(INSN, "ft5", 2, bytes, p)                                                                                    \
    TW_AT(INSN, "ft6", 3, bytes, p)                                                                                    \
    TW_AT(INSN, "ft7", 4, bytes, p)                                                                                    \
    TW_AT(INSN, "fa0", 5, bytes, p) TW_AT(INSN, "fa1", 6, bytes, p) TW_AT(INSN, "fa2", 7, bytes, p)
/* The same of eight results, to which the lanes of sums are added (vfsum.s). */
#define TW_RESULTS_AT(INSN, bytes, p)                                                                                  \
    TW_AT(INSN, "fa3", 0, bytes, p)                                                                                    \
    TW_AT(INSN, "fa4", 1, bytes, p)                                                                                    \
    TW_AT(INSN, "fa5", 2, bytes, p)                                                                                    \
    TW_AT(INSN, "fa6", 3, bytes, p)                                                                                    \
    TW_AT(INSN, "fa7", 4, bytes, p)                                                                                    \
    TW_AT(INSN, "ft8", 5, bytes, p) TW_AT(INSN, "ft9", 6, bytes, p) TW_AT(INSN, "ft10", 7, bytes, p)
#define TW_VFSUM_S(d, a) ".insn r 0x33, 0, 0x47, " d ", " a ", x28\n"
#define TW_ADD_LANES                                                                                                   \
    TW_VFSUM_S("fa3", "ft3")                                                                                           \
    TW_VFSUM_S("fa4", "ft4")                                                                                           \
    TW_VFSUM_S("fa5", "ft5")                                                                                           \
    TW_VFSUM_S("fa6", "ft6")                                                                                           \
    TW_VFSUM_S("fa7", "ft7") TW_VFSUM_S("ft8", "fa0") TW_VFSUM_S("ft9", "fa1") TW_VFSUM_S("ft10", "fa2")
/* Before that, where there is nothing to add them to: a zero of 32 bits is in fs0. */
#define TW_NO_RESULTS                                                                                                  \
    "fmv.s fa3, fs0\nfmv.s fa4, fs0\nfmv.s fa5, fs0\nfmv.s fa6, fs0\nfmv.s fa7, fs0\n"                                 \
    "fmv.s ft8, fs0\nfmv.s ft9, fs0\nfmv.s ft10, fs0\n"
#define TW_EIGHT_RESULTS "fa3", "fa4", "fa5", "fa6", "fa7", "ft8", "ft9", "ft10"

/* Columns of a row in whole blocks, in three parts: cores begin with different columns, which are in different banks, and the
 * last ones, if they are no block, are computed together with some of those before, which are done. */
struct tw_columns {
    int begin[3], end[3], done[3];
};
TW_INLINE struct tw_columns tw_columns(int count, int block) {
    const int whole = count - count % block, first = tw_core() * block % whole;
    return (struct tw_columns){{first, 0, whole < count ? count - block : count}, {whole, first, count}, {0, 0, whole}};
}

/* Whether results go to Y as they are. */
#define TW_PLAIN(Y, type) (STORE_STEPS == 0 && STORE_AGAIN && sizeof *(Y) == sizeof(type))
/* Stores `count` results of a row, sixteen at a time. */
#define TW_STORE_ROW(epilogue, Y, results, at, channel, count)                                                         \
    do                                                                                                                 \
        for (int done_ = 0; done_ < (count); done_ += 16)                                                              \
            STORE(epilogue, Y, (results) + done_, (at) + done_, 0, (channel) + done_, 1, tw_min(16, (count) - done_)); \
    while (0)

#endif
