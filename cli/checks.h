/*
 * What `qk doctor` looks at in a workspace, beyond what loading it complains of. Nothing is run and
 * nothing is written.
 */
#ifndef QK_CLI_CHECKS_H
#define QK_CLI_CHECKS_H

#include "cli/faults.h"
#include "cli/site.h"

struct qk_checked {
	size_t projects, targets; /* 0 where the workspace does not load */
};

/* Loads the workspace of a site that is one, and adds all that is found, by kind. */
void qk_checks_workspace(struct qk_site *s, struct qk_faults *f, struct qk_checked *ret);

#endif
