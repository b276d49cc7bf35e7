/*
 * A command's stdout and stderr pass through here on their way, so that what it prints can be kept
 * for replay, without the command noticing: where there was a terminal it has one (a pseudo-terminal
 * of the same size and settings), where both were one file they are one pipe. Bytes go on at once.
 */
#ifndef QK_RUNNER_RELAY_H
#define QK_RUNNER_RELAY_H

#include "base/err.h"
#include "keying/capture.h"

#include <stdbool.h>

struct qk_relay_channel {
	int from;   /* our end; -1: at its end, or there is none */
	int theirs; /* what the command gets; -1 once it has it */
	int to;     /* 1 or 2 */
	bool pty;
};

struct qk_relay {
	struct qk_relay_channel channels[2];
	int n; /* 1: stdout and stderr are one */
	struct qk_capture capture;
	bool too_much; /* more was printed than is kept */
	bool keep;     /* for replay */
	bool hold;     /* only kept, not passed on: who holds it shows it afterwards */
	void (*seen)(void *arg, const char *p, size_t n); /* told of what passes, or NULL */
	void *arg;
};

/* Makes the channels; keep, seen and arg are the caller's to set. On an error nothing is changed, and the command keeps our descriptors. */
int qk_relay_open(struct qk_relay *r, struct qk_err *err);

/* In the child: puts its ends in place as 1 and 2. */
void qk_relay_enter(const struct qk_relay *r);

/* In the parent, once all children were started: lets go of their ends. */
void qk_relay_started(struct qk_relay *r);

/* Passes on what has come on channel i. */
void qk_relay_serve(struct qk_relay *r, int i);

/* The terminal has another size now. */
void qk_relay_resize(const struct qk_relay *r);

/*
 * The command has ended: passes on what is still there. True if a process it left still holds an
 * end open; a process of ours then stays behind to pass on what that one prints.
 */
bool qk_relay_finish(struct qk_relay *r);

void qk_relay_release(struct qk_relay *r);

#endif
