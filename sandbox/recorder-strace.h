/*
 * The recorder of last resort: the strace program, its output read and understood as it comes.
 * It sees results; what it cannot see (whether a file was there before it was opened for writing)
 * is judged as sandbox/witness.h says.
 *
 * strace runs beside the command (-D), not above it: the command is our own child, its status and
 * its signals are its own.
 */
#ifndef QK_SANDBOX_RECORDER_STRACE_H
#define QK_SANDBOX_RECORDER_STRACE_H

#include "base/err.h"
#include "base/vec.h"
#include "sandbox/trace.h"
#include "sandbox/witness.h"

#include <stdbool.h>
#include <sys/types.h>

struct qk_strace {
	struct qk_trace *trace;
	struct qk_witness witness;
	struct qk_strv argv; /* strace and its options, then the command */
	char *fifo;          /* removed as soon as strace has opened it */
	int fd;              /* its reading end; -1 after the end */
	struct qk_buf text;  /* read and not yet understood */
	struct qk_arena arena;
	struct qk_strace_process *processes;
	const char *first_cwd;
	pid_t pid, tracer;   /* tracer: 0 until known */
	bool seen_any;  /* strace has attached */
	bool executed;  /* the command's own exec has worked */
	int exec_errno; /* or why it has not */
};

/*
 * Finds strace, makes its output fifo in dir (NULL: the host's temporary directory), and builds
 * s->argv. stays: processes may outlive the recording, so that strace must be able to let go of
 * them; the quicker way, by a seccomp filter in the command, does not allow that.
 */
int qk_strace_init(struct qk_strace *s, struct qk_trace *trace, char *const *argv, const char *dir,
	bool stays, struct qk_err *err);
void qk_strace_release(struct qk_strace *s);

/* Reads and understands what has come. False: nothing more will. */
bool qk_strace_serve(struct qk_strace *s);

/* Which of these, all that is left of the command, is strace itself: the one that it does not trace. */
void qk_strace_find_tracer(struct qk_strace *s, const pid_t *pids, size_t n);

/* Understands one line of strace's output; for tests. */
void qk_strace_line(struct qk_strace *s, char *line);

#endif
