/*
 * Where nx.json lies at the workspace root and make runs there, the workspace's tasks become rules.
 * What that takes (the model, libgit2, libyaml) is a shared object of its own, qk-workspace.so,
 * loaded only then; this is what the two say to each other.
 */
#ifndef QK_GMK_PLUGIN_TASKPART_H
#define QK_GMK_PLUGIN_TASKPART_H

#include "gmk-plugin/knobs.h"
#include "report/session.h"
#include "report/taskstatus.h"

#include <stdbool.h>
#include <stddef.h>

/* What qk.so offers. */
struct qk_taskhost {
	const char *root, *state, *runner;
	const struct qk_knobs *knobs; /* final once all makefiles are read */
	/* Makes or joins the run. */
	const struct qk_session *(*start)(void);
	/*
	 * Writes the request of a task; allocated: "requests.PID:OFFSET:LENGTH" below the run. grants:
	 * NULL, or its lists and is_explicit go along.
	 */
	char *(*request)(const char *target, const char *project, const char *task, size_t n,
		const struct qk_request *grants);
	/* True where make only pretends (-n, -q, -t). */
	bool (*pretending)(void);
};

/* What qk-workspace.so offers, under the name qk_taskpart_of_workspace. */
struct qk_taskpart {
	/* Reads the workspace and gives make its rules. Ends make where that cannot be. */
	void (*load)(const struct qk_taskhost *host);
	/* True if the target is a task. */
	bool (*has)(const char *target);
	/* The recipe of task number n, allocated: the commands; NULL where nothing has to run. */
	char *(*recipe)(size_t n);
	/* The flags its runner is started with, allocated. */
	char *(*flags)(const char *target);
	/* The key of a task as things are now, in hexadecimal, allocated. Ends make if it has none. */
	char *(*key)(const char *id);
	/* What the workspace knows of the paths in a report. */
	const struct qk_report_places *places;
	/* At the end of make: tells of each task that needed no runner. */
	void (*finish)(void (*each)(const struct qk_taskstatus *s, void *arg), void *arg);
};

/* Loads that part where there is a workspace, while makefiles are read. home ends in '/'. */
void qk_taskpart_load(const char *home);

extern const struct qk_taskpart *qk_taskpart; /* NULL: no workspace */

#endif
