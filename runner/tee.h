/*
 * Keeps what a command prints for a later replay, without the command noticing: where it has a
 * terminal it gets another one of the same size and settings, else a pipe; where stdout and stderr
 * are one file they stay one. Bytes are passed on as they come, in the order in which they come.
 *
 * Between _begin and _end descriptors 1 and 2 of this process are the command's; whoever runs it has
 * the watches served meanwhile.
 */
#ifndef QK_RUNNER_TEE_H
#define QK_RUNNER_TEE_H

#include "base/err.h"
#include "keying/capture.h"
#include "sandbox/run.h"

#include <stdbool.h>

/* 64 MiB: what prints more is not kept. */
enum { QK_TEE_MAX = 64 << 20 };

struct qk_tee_channel {
	struct qk_tee *tee;
	int from, to; /* to: what the command would have printed to; -1 each when over */
	int stream;
	bool terminal;
	size_t have, done; /* of the block: read, and of that passed on */
	char block[16 << 10];
};

struct qk_tee {
	struct qk_capture capture;
	bool too_much;
	bool failed; /* bytes could not be passed on: the reader is gone */
	struct qk_tee_channel channels[2];
	struct qk_run_watch watches[2];
	unsigned int n;
	bool took_sigpipe;
	int saved[2]; /* 1 and 2 as they were */
};

/* True if 1 (or 2) is a terminal now. */
bool qk_tee_is_terminal(int fd);

int qk_tee_begin(struct qk_tee *t, struct qk_err *err);

/*
 * Gives this process its own 1 and 2 back and passes on what is still on its way. left_running:
 * processes that may print later: somebody stays to pass that on.
 */
void qk_tee_end(struct qk_tee *t, bool left_running);

void qk_tee_release(struct qk_tee *t);

#endif
