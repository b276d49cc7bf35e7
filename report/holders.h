/*
 * What a task left written, and the directories that hold some of it: such a directory is not listed
 * itself. Found once for a trace, by walking up from each path, not by every path for every directory.
 */
#ifndef QK_REPORT_HOLDERS_H
#define QK_REPORT_HOLDERS_H

#include "sandbox/trace.h"

#include <stdbool.h>

struct qk_holder;

struct qk_holders {
	const struct qk_trace *of;
	struct qk_holder *dirs;
};

/* Written or changed, and not made and removed again. */
bool qk_is_left_written(const struct qk_trace_entry *e);

/*
 * True if the trace, which must not change meanwhile, holds something left written beneath dir. h may
 * begin as zeros.
 */
bool qk_holders_have(struct qk_holders *h, const struct qk_trace *trace, const char *dir);
void qk_holders_release(struct qk_holders *h);

#endif
