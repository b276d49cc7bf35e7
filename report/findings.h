/*
 * From the logs of a run to findings: the lines of each recipe are joined to one task again, what
 * a task did is held against its policy's verdicts, and tasks against each other (ordering, two
 * writers). Pure of printing; report/text and report/json show what is here.
 */
#ifndef QK_REPORT_FINDINGS_H
#define QK_REPORT_FINDINGS_H

#include "base/mem.h"
#include "base/vec.h"
#include "keying/request.h"
#include "report/kinds.h"
#include "report/session.h"

struct qk_finding {
	enum qk_kind kind;
	const char *path;   /* relative to where the top make started; for LEFT the process */
	const char **others; /* NULL-terminated; ORDERING: the target that makes it; WRITERS: the others;
			      * DEPENDENCY: the project it is in; NULL for the other kinds */
	const char *fix;    /* make syntax; NULL if no line mends it */
	bool shared;        /* many tasks have it: the text lists it once, at the top */
	const char *field;  /* of project.json that lacks something; NULL in a Makefile */
	const char *value;  /* what; in a Makefile the pattern of what was read; or NULL */
};

enum qk_standing {
	QK_AUDITED,     /* recorded completely: findings hold */
	QK_UNAUDITED,   /* the recording is incomplete; why */
	QK_UNSANDBOXED, /* ran as it is; why */
	QK_REFUSED_RUN, /* not run; why */
	QK_RESTORED,    /* taken from the cache: nothing was run */
};

struct qk_report_task {
	const char *name; /* target, relative to where the top make started */
	enum qk_standing standing;
	const char *why;
	const char *uncached; /* why it was not stored; NULL = it was, or was not to be */
	const char *sandbox_fix; /* of explicit grants: what would have allowed all of it; or NULL */
	bool cacheable; /* its lines are looked up or recorded */
	bool failed;
	bool workspace; /* a task of the workspace: its fixes are for project.json */
	const char *directory; /* of the make that ran it, relative to the root of the run */
	QK_VEC(struct qk_finding) findings; /* by kind, then path */
};

/* A QK_ pattern that matched nothing. */
struct qk_report_notice {
	const char *task, *variable, *pattern;
};

/* A path that at least three tasks, and a quarter of those that went beyond, read or wrote undeclared. */
struct qk_report_shared {
	enum qk_kind kind; /* READ, GRANTED or WRITE */
	const char *path;
	size_t tasks;
	const char *fix; /* one rule for all of them; NULL where they are of different makes */
};

struct qk_report {
	struct qk_arena arena;
	const struct qk_session *session;
	QK_VEC(struct qk_report_task) tasks; /* as struct qk_tasks has them */
	QK_VEC(struct qk_report_notice) notices;
	QK_VEC(struct qk_report_shared) shared; /* by kind, then number of tasks, most first */
	char *trouble; /* why the logs could not be read to the end; NULL = they could */
};

/* What a workspace knows of paths, all absolute; a plain Makefile's run has none. */
struct qk_report_places {
	/* The project that owns the path, if the task's project depends on it; else NULL. */
	const char *(*dependency)(const char *task, const char *path);
	/* True for the package.json of a project. */
	bool (*manifest)(const char *path);
	/* Another task that the path is an output of; else NULL. */
	const char *(*maker)(const char *task, const char *path);
	/*
	 * The installed package that the path is the package.json of, if the task's key does not hold
	 * it; else NULL. *ret_hoisted: nothing that its importers install depends on it.
	 */
	const char *(*package)(const char *task, const char *path, bool *ret_hoisted);
	/* True if an input can select the path: it is not ignored by Git, say. */
	bool (*selectable)(const char *path);
};

/* Reads the run directory of the session. Never fails: what cannot be read is in trouble. */
void qk_report_read(struct qk_report *rep, const struct qk_session *session,
	const struct qk_report_places *places);
void qk_report_release(struct qk_report *rep);

/* True if the task has a finding that counts. */
bool qk_report_went_beyond(const struct qk_report_task *t);

#endif
