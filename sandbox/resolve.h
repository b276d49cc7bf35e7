/*
 * A path as a task means it -> the object it names: absolute, clean, no link left in it.
 *
 * Relative paths start at the task's own current directory or directory descriptor, /proc/self and
 * /dev/fd are the task's, not the recorder's. Every link passed is reported to the trace (FOLLOW).
 * The file system is looked at as it is now, so the task must be stopped in the call.
 *
 * Directories are remembered by their string, because a compiler opens a hundred files of one.
 * A missing directory is not remembered: another task may make it meanwhile.
 */
#ifndef QK_SANDBOX_RESOLVE_H
#define QK_SANDBOX_RESOLVE_H

#include "base/buf.h"
#include "sandbox/trace.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

struct qk_resolver {
	struct qk_trace *trace; /* borrowed; NULL: links are not reported */
	struct qk_resolver_dir *dirs;
	struct qk_arena arena;
	struct qk_buf text;
};

/* Where a path leads. Initialise with QK_PLACE_INIT; may be used again and again. */
struct qk_place {
	struct qk_buf
		path; /* "" if what is there has no name (a pipe, a deleted or unnamed file) */
	int err;      /* 0: exists, st is filled; ENOENT, ENOTDIR, ELOOP, EACCES ... */
	struct stat st;
};

#define QK_PLACE_INIT                                                                              \
	{                                                                                          \
		.path = QK_BUF_INIT, .err = ENOENT                                                 \
	}

void qk_resolver_init(struct qk_resolver *r, struct qk_trace *trace);
void qk_resolver_release(struct qk_resolver *r);

/* A directory or a link has gone or moved: nothing remembered holds any more. */
void qk_resolver_forget(struct qk_resolver *r);

enum qk_resolve_flags {
	QK_RESOLVE_NOFOLLOW = 1 << 0, /* a link in the last place is the object itself */
	QK_RESOLVE_EMPTY = 1 << 1,    /* AT_EMPTY_PATH: "" is the base itself */
};

/*
 * pid is a thread's or process's number in our pid namespace. base is the absolute directory that
 * a relative path starts at; NULL = the task's dirfd (AT_FDCWD: its current directory).
 * A path whose parent directory exists gets its full name even if err is ENOENT.
 */
void qk_resolve(struct qk_resolver *r, pid_t pid, int dirfd, const char *base, const char *path,
	unsigned int flags, struct qk_place *ret);

#endif
