/*
 * How far long work has got, on a terminal: one line that is written over and taken away again. In a
 * pipe or a file, or where TERM is dumb, nothing is written.
 *
 * The cursor stays at the start of the line, so that whoever else prints writes over it.
 */
#ifndef QK_BASE_PROGRESS_H
#define QK_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Nothing is said of work that is done sooner, nor more often. */
enum { QK_PROGRESS_AFTER_MS = 500, QK_PROGRESS_EVERY_MS = 100 };

struct qk_progress {
	int fd; /* -1: nobody to tell */
	bool shown;
	int64_t since_ms, last_ms; /* 0: not begun */
};

void qk_progress_init(struct qk_progress *p, int fd);

/* The first call begins the work. now_ms: of qk_clock_ms(). */
void qk_progress_say(struct qk_progress *p, int64_t now_ms, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Takes the line away; work begins anew with the next call. */
void qk_progress_clear(struct qk_progress *p);

#endif
