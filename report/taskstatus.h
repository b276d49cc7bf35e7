/*
 * What became of the tasks of a workspace in a run: ran, restored, up to date, and why one that ran
 * was not cached. Runners append theirs to the file `statuses` of the run directory
 * (base/record.h: one record each, tags in taskstatus.c); a make adds at its end what it decided
 * itself.
 */
#ifndef QK_REPORT_TASKSTATUS_H
#define QK_REPORT_TASKSTATUS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "report/findings.h"

#include <stdbool.h>
#include <stdint.h>

enum qk_status {
	QK_STATUS_RAN,
	QK_STATUS_RESTORED,
	QK_STATUS_UP_TO_DATE,
	QK_STATUS_NOTHING, /* nx:noop */
};

struct qk_taskstatus {
	const char *id;
	enum qk_status status;
	const char *key;      /* hexadecimal; NULL: none */
	const char *uncached; /* why its result was not stored, though it ended well; or NULL */
	bool as_declared;     /* and it was not to be: the summary need not say so */
	int exit;             /* as from waitpid(2) */
	uint64_t start_ms;    /* since 1970; 0 = it did not start */
	uint64_t duration_ms;
	uint64_t saved_ms; /* RESTORED: what the run that was stored had taken */
	const char *recordings; /* "mode": "record": what they would have: "restored", "run", "none"; else NULL */
	const char *const *differing; /* restored so, these outputs would be others, up to NULL; NULL: not known */
	const char *unrecorded;  /* why its recording was not kept; or NULL */
};

struct qk_taskstatuses {
	struct qk_arena arena;
	QK_VEC(struct qk_taskstatus) v;
};

void qk_taskstatuses_add(struct qk_taskstatuses *l, const struct qk_taskstatus *s); /* copies */
void qk_taskstatuses_release(struct qk_taskstatuses *l);

/* The records of the list, and back: a damaged record ends it. */
void qk_taskstatuses_put(struct qk_buf *out, const struct qk_taskstatuses *l);
void qk_taskstatuses_take(struct qk_taskstatuses *l, const char *p, size_t n);

/* Appends all of the list to the run's file with one write. */
int qk_taskstatuses_append(const struct qk_taskstatuses *l, const char *run, struct qk_err *err);
/* Adds what the run's file holds; a missing file is an empty one, a damaged record ends it. */
void qk_taskstatuses_read(struct qk_taskstatuses *l, const char *run);

/*
 * The summary: "qk: 12 tasks: 3 ran, 5 restored, 4 up to date", and a line for each reason not to
 * cache. Nothing for an empty list.
 */
void qk_taskstatuses_text(struct qk_buf *out, const struct qk_taskstatuses *l);

/* The QK_REPORT object; rep (findings, by task) may be NULL: nothing was audited. */
void qk_taskstatuses_json(
	struct qk_buf *out, const struct qk_taskstatuses *l, const struct qk_report *rep);

#endif
