/*
 * The lines that mend several findings of one task at once: one rule for all prerequisites, one line
 * for each field of project.json, and globs where names would be too many.
 */
#ifndef QK_REPORT_FIXES_H
#define QK_REPORT_FIXES_H

#include "report/findings.h"

enum {
	QK_FIXES_NAMES = 64, /* more names than that and a rule takes globs, by QK_INPUTS */
	QK_FIXES_GLOBS = 8,  /* in place of names, as many as a text shows */
};

/* The fields of project.json that fixes are for; NULL ends them. */
extern const char *const qk_fixes_fields[];

/*
 * Pushes what the field of the task lacks, for the findings [from, to): globs in place of more than
 * `most` inputs. Without shared those listed at the top are left out.
 */
void qk_fixes_values(struct qk_strv *out, const struct qk_report_task *t, size_t from, size_t to,
	const char *field, bool shared, size_t most);

/* The same for a task of a Makefile: lines of make. */
void qk_fixes_rules(
	struct qk_strv *out, const struct qk_report_task *t, size_t from, size_t to, bool shared);

#endif
