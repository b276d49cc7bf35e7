/*
 * A workspace task as its runner needs it: what to run and how, what its key is made of, what it
 * makes, and what it may touch. It travels in the task field of a request (keying/request.h).
 *
 * Layout (base/record.h): one record; its first field is the magic, then the fields of enum
 * taskspec_tag in any order, lists one element a field, and those of the parts (keying/parts.h).
 * Paths are relative to the workspace root unless said otherwise.
 */
#ifndef QK_KEYING_TASKSPEC_H
#define QK_KEYING_TASKSPEC_H

#include "base/err.h"
#include "base/mem.h"
#include "keying/parts.h"

#include <stdbool.h>
#include <stdint.h>

/* Strings of the arena. */
struct qk_texts {
	const char **v;
	size_t n, cap;
};

/* A rule of the task's policy, with the numbers of sandbox/policy.h. */
struct qk_taskrule {
	const char *path;
	uint8_t scope, rights, reason;
};

struct qk_taskspec {
	struct qk_arena arena;
	const char *id; /* "app:build" */
	const char *project, *project_root, *target;
	const char *configuration; /* or NULL */
	const char *problem;       /* why it cannot be run at all, or NULL */
	struct qk_texts commands;
	bool parallel;   /* all at once; else one after the other */
	bool continuous; /* runs until nobody needs it */
	bool alone;      /* nothing else may run beside it */
	bool beside;     /* there are tasks in the workspace that must run alone */
	bool skip;       /* SKIP_CACHE: it runs, whatever is known */
	bool explain;    /* QK_EXPLAIN: if it runs, it says why */
	const char *cwd; /* absolute */
	const char *env_file;
	struct qk_texts env;    /* NAME=VALUE */
	struct qk_texts dotenv; /* files, the first to name a variable has it */
	struct qk_texts ready_when;
	struct qk_texts outputs;
	uint64_t ultracache;      /* enum qk_ultracache_mode */
	bool record;              /* RECORD=1 */
	struct qk_texts unrecorded; /* paths and patterns that recordings leave out */
	struct qk_texts unchecked; /* outputs whose contents may differ from run to run */
	struct qk_texts scratch;
	struct qk_texts warm; /* patterns */
	struct qk_texts needs; /* "N TOTAL": continuous tasks it needs (report/keepers.h) */
	uint64_t number;       /* in its make */
	bool foreground;       /* a continuous task that was asked for: make waits for it */
	const char *uncached; /* why its result is neither looked up nor stored, or NULL */
	const char *unkeyed;  /* why not even a key can be told; NULL or no parts: none is asked */
	const char *unsandboxed; /* why it runs as it is, whatever SANDBOX says, or NULL */
	const char *store;    /* absolute; NULL: no store */
	uint64_t store_limit;
	struct qk_parts parts;
	QK_VEC(struct qk_taskrule) rules;
	/* A task held to explicit grants: */
	bool explicit_grants;
	bool weaker_when_nested;
	struct qk_texts walls;    /* directories that grants of what holds them do not reach into */
	struct qk_texts hidden;   /* absolute: credentials, outside the workspace */
	struct qk_texts withheld; /* "DIRECTORY\tPACKAGE": linked projects no task of which the key folds */
	struct qk_texts ignored_reads, ignored_writes; /* absolute globs: not reported */
};

void qk_taskspec_release(struct qk_taskspec *s);

/* Appends the record. The arena is the caller's matter. */
void qk_taskspec_write(const struct qk_taskspec *s, struct qk_buf *out);

/* Reads it back; strings are copied. -EBADMSG: damaged. Release it also then. */
int qk_taskspec_read(struct qk_taskspec *s, const char *p, size_t n, struct qk_err *err);

#endif
