/*
 * The make that `qk run` and `qk run-many` start: its command line and environment, from what was
 * asked. Pure: nothing is looked at but what is given.
 */
#ifndef QK_CLI_MAKELINE_H
#define QK_CLI_MAKELINE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"

#include <stdbool.h>

struct qk_makeline {
	const char *mk;        /* qk.mk, absolute */
	bool has_makefile;     /* make finds one: qk.mk then comes by MAKEFILES, else by -f */
	const char *makefiles; /* MAKEFILES as it is, or NULL */
	const char *cwd;       /* report files are taken from here; make may run elsewhere */
	/* as given; NULL: not given */
	const char *sandbox; /* "" means audit */
	const char *sandbox_report, *report;
	const char *skip_cache, *record, *keep_going, *dry_run;
	const char *jobs;
	char *const *rest; /* after "--": for make as they are; NULL: none */
	struct qk_strv goals;
};

/*
 * argv: the command line, from "make" on. *ret_makefiles (allocated): what MAKEFILES is to be set
 * to, NULL to leave it. -EINVAL with a line: a value that make or qk.mk would not take.
 */
int qk_makeline_compose(const struct qk_makeline *m, struct qk_strv *argv, char **ret_makefiles,
	struct qk_err *err);

/* True if words that are for make name a makefile themselves (-f FILE, --file=FILE ...). */
bool qk_makeline_names_makefile(char *const *rest);

/* Appends a word as a shell needs it: quoted if it holds anything special. */
void qk_makeline_quote(struct qk_buf *out, const char *word);

#endif
