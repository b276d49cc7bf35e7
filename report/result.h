/*
 * A result: what one recipe line did, appended by its runner to the run's log, the file `results`
 * of the run directory, with one write. The summary joins the lines of one request again.
 *
 * Layout (base/record.h): one record a line; the first field is the magic, then the fields of
 * enum result_tag. The trace's bytes are one field; beside it lies one with three bytes per entry:
 * answers (read in bits 0-1, write in bits 2-3, leads to an output in bit 4), reason for the read,
 * reason for the write, as enum qk_answer and qk_reason.
 */
#ifndef QK_REPORT_RESULT_H
#define QK_REPORT_RESULT_H

#include "base/err.h"
#include "base/vec.h"
#include "sandbox/policy.h"
#include "sandbox/trace.h"

#include <stdint.h>

/* What became of the line. */
enum qk_fate {
	QK_FATE_RAN,         /* recorded; the trace says whether completely */
	QK_FATE_SUBMAKE,     /* a $(MAKE) line: no task, its recipes are */
	QK_FATE_UNSANDBOXED, /* ran as it is; why says for what reason */
	QK_FATE_REFUSED,     /* enforce could not hold it: not run */
	QK_FATE_RESTORED,    /* its result came from the cache: not run */
};

/* The policy's word on one trace entry. */
struct qk_judged {
	struct qk_verdict read, write;
	bool leads; /* a directory on the way to something that may be written */
};

struct qk_result {
	uint64_t make_pid, offset; /* the request */
	enum qk_fate fate;
	int status; /* as from waitpid(2) */
	char *why;
	struct qk_trace trace;
	QK_VEC(struct qk_judged) judged; /* one per trace entry */
	struct qk_strv declared; /* absolute resolved paths that the dependency file lists */
	struct qk_strv left;     /* left running */
	char *uncached;          /* why its result was not stored, where it was to be; else NULL */
	struct qk_strv stray;    /* written, not applied (enforce): all that the layer then held */
	bool own_layer;          /* that layer is this line's alone; else the task's lines share it */
};

void qk_result_init(struct qk_result *r, uint64_t make_pid, uint64_t offset);
void qk_result_release(struct qk_result *r);

/* Judges every entry of the trace. */
void qk_result_judge(struct qk_result *r, const struct qk_policy *p);

/* Appends to the run's log. */
int qk_result_append(const struct qk_result *r, const char *run, struct qk_err *err);

/*
 * Calls each for every result in the log, in order, with a result that is released afterwards.
 * A missing log is an empty one. A damaged record ends the reading with -EBADMSG; what came
 * before it has been handed over.
 */
typedef void qk_result_fn(struct qk_result *r, void *arg);
int qk_result_each(const char *run, qk_result_fn *each, void *arg, struct qk_err *err);

#endif
