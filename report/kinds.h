/*
 * The kinds of finding, in one table: how a report names each, and whether a task with one has
 * gone beyond what it declares.
 */
#ifndef QK_REPORT_KINDS_H
#define QK_REPORT_KINDS_H

#include "sandbox/policy.h"

#include <stdbool.h>

enum qk_kind {
	QK_KIND_READ,      /* read, and not declared */
	QK_KIND_GRANTED,   /* the same, but a grant opens it: enforce lets it through */
	QK_KIND_TSCONFIG,
	QK_KIND_DEPENDENCY, /* in a project that the task's project depends on */
	QK_KIND_ORDERING,  /* made by a recipe that this one does not wait for */
	QK_KIND_WRITE,     /* written outside the outputs */
	QK_KIND_WRITERS,   /* written by another recipe of the run too */
	QK_KIND_LEFT,      /* processes left running */
	QK_KIND_PACKAGE,   /* installed, and not in the key; the path is its name */
	QK_KIND_HOISTED,   /* the same, and nothing the task's importers install depends on it */
	QK_KIND_GIT_WRITE, /* written in .git */
	QK_KIND_UNKEYED,   /* .git and dotenv files read */
	QK_KIND_MANIFEST,
	QK_KIND_TOOLCHAIN,
	QK_KIND_UNUSED, /* prerequisites that the recipe did not touch */
	QK_N_KINDS,
};

struct qk_kind_info {
	const char *key;     /* in JSON; kinds may share one */
	bool beyond;         /* counts as going beyond */
	bool listed;         /* under its task in the text */
	const char *audit;   /* heading, after the count */
	const char *enforce; /* heading where a sandbox held the task */
	const char *workspace[2]; /* the same for tasks of a workspace, where they differ */
};

/* What a read with that verdict, other than allowed, counts as. */
enum qk_kind qk_kind_of_read(const char *path, struct qk_verdict v);

extern const struct qk_kind_info qk_kinds[QK_N_KINDS];

#endif
