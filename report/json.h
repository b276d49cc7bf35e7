/*
 * JSON output. Strings hold bytes: what is not UTF-8 is written as the lone surrogates U+DC80 to
 * U+DCFF (Python's surrogateescape), so that every name comes back byte for byte.
 */
#ifndef QK_REPORT_JSON_H
#define QK_REPORT_JSON_H

#include "base/buf.h"
#include "report/findings.h"

/* Appends s as a JSON string, with its quotes. */
void qk_json_string(struct qk_buf *out, const char *s);

/* The findings of one task as an object of lists. */
void qk_json_findings(struct qk_buf *out, const struct qk_report_task *t);

/* The SANDBOX_REPORT object; the manual page qk.mk(5) has its fields. */
/*
 * The same with "tasks" left empty: where a report has to stay small, what mends it is enough.
 */
void qk_json_report_brief(struct qk_buf *out, const struct qk_report *rep);

void qk_json_report(struct qk_buf *out, const struct qk_report *rep);

#endif
