/* Included by force (-include) where the parts of an inference are to be timed. */
#ifndef TILEWRIGHT_MARKS_H
#define TILEWRIGHT_MARKS_H

#ifndef __ASSEMBLER__
void tw_mark(int number);
#define TW_MARK(group, place, number) TW_MARK_##place(group)
#define TW_MARK_begin(group) tw_mark(group)
#define TW_MARK_ahead(group) ((void)0)
#define TW_MARK_start(group) ((void)0)
#define TW_MARK_now(group) ((void)0)
#define TW_MARK_work(group) ((void)0)
#define TW_MARK_store(group) ((void)0)
#define TW_MARK_await(group) ((void)0)
#define TW_MARK_end(group) ((void)0)
#endif

#endif
