#include "report/fix.h"

#include <stdbool.h>
#include <string.h>

/* Where make would read a byte as syntax, a backslash (or a second '$') keeps it a byte. */
static void quoted(struct qk_buf *out, const char *name, bool target)
{
	for (const char *s = name; *s; s++) {
		if (*s == '$')
			qk_buf_addch(out, '$');
		else if (strchr(" \t#:;|*?[", *s) || (target && strchr("%=", *s)))
			qk_buf_addch(out, '\\');
		qk_buf_addch(out, *s);
	}
}

void qk_fix_prerequisite(struct qk_buf *out, const char *target, const char *prerequisite)
{
	quoted(out, target, true);
	qk_buf_addstr(out, ": ");
	quoted(out, prerequisite, false);
}

void qk_fix_variable(
	struct qk_buf *out, const char *target, const char *variable, const char *path)
{
	quoted(out, target, true);
	qk_buf_addf(out, ": %s += ", variable);
	for (const char *s = path; *s; s++) {
		if (*s == '$' || *s == '#')
			qk_buf_addch(out, *s == '$' ? '$' : '\\');
		qk_buf_addch(out, *s);
	}
}
