/*
 * The summary that ends a run, for people.
 */
#ifndef QK_REPORT_TEXT_H
#define QK_REPORT_TEXT_H

#include "base/buf.h"
#include "report/findings.h"

enum {
	QK_TEXT_PATHS = 8, /* at most so many paths of one kind under a task */
	QK_TEXT_FEW = 4,   /* of very many (QK_FIXES_NAMES): what mends them says more */
};

/* Appends the summary: one line for a clean run, more where there is more to say. */
void qk_text_summary(struct qk_buf *out, const struct qk_report *rep);

/* Appends a name for a terminal: control bytes and quotes as in a C string, within quotes. */
void qk_text_name(struct qk_buf *out, const char *name);

#endif
