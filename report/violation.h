/*
 * What a task that is held to explicit grants was refused, or did without leave, as far as it is
 * told: its own project's files, and what past the project it tried to change. Past the project
 * refused reads are silent, but for a linked project that is withheld. What was to be written outside
 * the workspace was refused as it happened: it is named where a task fails, and fails none by itself.
 */
#ifndef QK_REPORT_VIOLATION_H
#define QK_REPORT_VIOLATION_H

#include "base/buf.h"
#include "base/vec.h"
#include "report/result.h"
#include "sandbox/policy.h"

#include <stdbool.h>

enum qk_violation_kind {
	QK_VIOLATION_READ,
	QK_VIOLATION_WRITE,
	QK_VIOLATION_WITHHELD, /* read in a linked project, no task of which the key folds */
	QK_VIOLATION_PAST,     /* a write past the project, not kept: named, and not counted */
	QK_VIOLATION_OUTSIDE,  /* a write outside the workspace, refused: the same */
};

struct qk_violation {
	enum qk_violation_kind kind;
	bool is_dir;
	bool unkeyed;        /* a read that no input matches */
	const char *path;    /* absolute; of the result */
	const char *package; /* WITHHELD: its name */
};

struct qk_violations {
	QK_VEC(struct qk_violation) v;
	size_t counted;
	size_t failing; /* those that fail a task that took no notice itself */
};

/* Whose. Strings are the caller's. */
struct qk_violation_scope {
	const struct qk_policy *policy;
	const char *project; /* absolute */
	const char *home, *temporary; /* absolute: home, and where others' temporary files are; or NULL */
	const char *const *withheld; /* "DIRECTORY\tPACKAGE" */
	size_t n_withheld;
	const char *const *ignored_reads, *const *ignored_writes; /* absolute globs, or names as they are */
	size_t n_ignored_reads, n_ignored_writes;
	bool (*is_input)(void *arg, const char *path);
	void *arg;
};

/*
 * From a judged result. settled: what was written shows in result->stray, else in the trace. Each
 * directory is told once, not what is in it.
 */
void qk_violations_find(struct qk_violations *ret, const struct qk_violation_scope *s,
	const struct qk_result *result, bool settled);
void qk_violations_release(struct qk_violations *v);

/* Appends lines: one per violation, then the fix lines. */
void qk_violations_text(
	struct qk_buf *out, const struct qk_violations *v, const struct qk_violation_scope *s);

/* Appends the fix alone, as qk_violations_text has it; nothing if there is none. */
void qk_violations_fix(
	struct qk_buf *out, const struct qk_violations *v, const struct qk_violation_scope *s);

#endif
