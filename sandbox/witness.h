/*
 * What a system call that a task is about to make does to files, told to the trace. The call's
 * result is not seen: whether it succeeds is judged by looking at the file system while the task
 * is stopped, by the rules of the kernel (O_EXCL, ENOTEMPTY, EXDEV, permissions of the task).
 */
#ifndef QK_SANDBOX_WITNESS_H
#define QK_SANDBOX_WITNESS_H

#include "sandbox/calls.h"
#include "sandbox/resolve.h"
#include "sandbox/trace.h"

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* One call, its arguments read. */
struct qk_deed {
	enum qk_call_op op;
	pid_t pid;
	int dirfd, dirfd2; /* AT_FDCWD where the call has none */
	const char *path, *path2;
	const char *base, *base2; /* known directories that relative paths start at, or NULL */
	uint64_t flags;           /* open flags, AT_*, RENAME_*, as the call has them */
	uint64_t resolve;         /* of openat2 */
	unsigned int mode;        /* of an open that makes a file */
};

/* What came of a call, for recorders that see it. */
struct qk_outcome {
	int err;            /* errno; 0 = success */
	const char *opened; /* the name of the descriptor that was returned, or NULL */
	bool known;     /* of what was opened, the next two are known, and the name is exact */
	bool made, dir; /* this call made it; it is a directory */
};

struct qk_witness {
	struct qk_trace *trace; /* borrowed */
	struct timespec began;  /* wall clock, not later than any file made by the command */
	struct qk_resolver resolver;
	struct qk_place a, b, parent;
};

void qk_witness_init(struct qk_witness *w, struct qk_trace *trace);
void qk_witness_release(struct qk_witness *w);

/*
 * Where a path that the call makes leads (the second one: path2), found out without telling the
 * trace. The task is stopped at the entry of this call.
 */
void qk_witness_look(struct qk_witness *w, const struct qk_deed *d, bool second,
	struct qk_place *ret);

/* The task is stopped at the entry of this call. */
void qk_witness_call(struct qk_witness *w, const struct qk_deed *d);

/* The call is over, and this came of it. */
void qk_witness_done(struct qk_witness *w, const struct qk_deed *d, const struct qk_outcome *o);

/*
 * realpath(3) of an existing path has been made: it asks of each name behind the first `from`
 * bytes, a resolved directory, whether it is a link.
 */
void qk_witness_realpath(struct qk_witness *w, const struct qk_deed *d, size_t from);

/*
 * A program at an absolute resolved path is executed: the program and, as the kernel opens them
 * unseen, the interpreters that its #! lines and its ELF header name.
 */
void qk_witness_exec(struct qk_witness *w, const struct qk_deed *d, const struct qk_place *program);

#endif
