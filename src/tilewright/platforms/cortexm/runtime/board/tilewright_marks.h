/* Included by force (-include) where the parts of an inference are to be timed. */
#ifndef TILEWRIGHT_MARKS_H
#define TILEWRIGHT_MARKS_H

#if !defined __ASSEMBLER__
void tw_mark(int number);
#define TW_MARK(group, place, number) tw_mark(group)
#endif

#endif
