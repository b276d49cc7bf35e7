/*
 * What one command touched, whoever recorded it. A recorder feeds events in the order in which
 * they happened; the trace keeps one entry per path, in order of the first access, with what
 * became of it. Nothing downstream knows which recorder it was.
 *
 * Only paths under one of the kept roots are stored (everything else is dropped as it comes).
 * Paths are absolute, clean and resolved: links on the way are entries of their own (FOLLOWED).
 *
 * A trace is complete, or incomplete with a reason; an incomplete one is never judged.
 */
#ifndef QK_SANDBOX_TRACE_H
#define QK_SANDBOX_TRACE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum qk_event {
	QK_EV_READ,   /* opened for reading, an existing file that is no directory */
	QK_EV_EXEC,   /* executed: a read too (scripts' interpreters are events of their own) */
	QK_EV_WRITE,  /* opened for writing or truncated, an existing file (O_RDWR: READ comes first) */
	QK_EV_CREATE, /* a file, node, socket or link made where nothing was */
	QK_EV_MKDIR,  /* a directory made */
	QK_EV_REMOVE, /* unlinked */
	QK_EV_RMDIR,
	QK_EV_META,   /* mode, owner or extended attributes changed */
	QK_EV_LIST,   /* a directory opened for reading */
	QK_EV_FOLLOW, /* a symbolic link passed on the way to something else */
	QK_EV_PRESENT, /* looked up and found, contents not read */
	QK_EV_ABSENT,  /* looked up in vain */
	QK_EV_WANT,    /* after ABSENT: it was to be opened for reading */
	QK_EV_KEEP,    /* before WRITE or CREATE: what stood there, if anything, is not cut off first */
};

/* What is known of one path after the last event. */
enum qk_touch {
	QK_T_READ = 1 << 0,     /* contents read that the task had not written itself */
	QK_T_EXEC = 1 << 1,     /* of those, executed */
	QK_T_LISTED = 1 << 2,
	QK_T_FOLLOWED = 1 << 3,
	QK_T_PRESENT = 1 << 4,  /* looked up while it was not the task's own work */
	QK_T_ABSENT = 1 << 5,   /* found missing before the task made anything there */
	QK_T_WRITTEN = 1 << 6,  /* made, opened for writing, renamed onto, or removed */
	QK_T_CREATED = 1 << 7,  /* was not there when the task first made or wrote it */
	QK_T_REMOVED = 1 << 8,  /* gone after the last event */
	QK_T_DIR = 1 << 9,      /* is, or last was, a directory */
	QK_T_META = 1 << 10,
	QK_T_READ_OWN = 1 << 11, /* read after the task wrote it */
	/* Only where look-ups are kept: what a change of the task's own took over from before. */
	QK_T_WANTED = 1 << 12, /* ABSENT, and its contents would have been read */
	QK_T_KEPT = 1 << 13,   /* changed with its contents, if there were any, left in */
};

struct qk_trace_entry {
	const char *path;
	uint32_t flags; /* enum qk_touch */
};

struct qk_trace {
	struct qk_arena arena;
	QK_VEC(struct qk_trace_entry) entries;
	struct qk_trace_index *index;
	struct qk_strv roots;  /* kept prefixes; none = everything is kept */
	bool changes_anywhere; /* of changes, keep those outside the roots too, but to devices and /proc */
	bool lookups;          /* keep PRESENT and ABSENT (recordings); audit drops them */
	char *incomplete;      /* why the trace cannot be believed; NULL = complete */
};

void qk_trace_init(struct qk_trace *t); /* then push roots and set lookups */
void qk_trace_release(struct qk_trace *t);

void qk_trace_event(struct qk_trace *t, enum qk_event ev, const char *path);

/*
 * from became to (rename, or exchange = both names swapped). is_dir: entries beneath move along.
 * replaced: something stood at `to` before.
 */
void qk_trace_rename(struct qk_trace *t, const char *from, const char *to, bool is_dir,
	bool replaced, bool exchange);

/* Marks the trace incomplete; the first reason stays. */
void qk_trace_lost(struct qk_trace *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

const struct qk_trace_entry *qk_trace_find(const struct qk_trace *t, const char *path);

/* Adds a later command's trace of the same task to an earlier one's. */
void qk_trace_append(struct qk_trace *t, const struct qk_trace *later);

/*
 * Drops what audit does not keep: paths outside root, and looks that led to nothing. For a trace
 * recorded with look-ups that is to be judged.
 */
void qk_trace_narrow(struct qk_trace *t, const char *root);

/* One record field's worth of bytes, and back. Reading checks everything: -EBADMSG. */
void qk_trace_write(const struct qk_trace *t, struct qk_buf *out);
int qk_trace_read(struct qk_trace *t, const char *p, size_t n, struct qk_err *err);

#endif
