/*
 * The rules of scratch directories ("qk:sandbox".scratch), as far as they can be told beforehand: a
 * scratch directory is emptied before its task runs, so it must not be able to hold anything else.
 */
#ifndef QK_CLI_SCRATCH_H
#define QK_CLI_SCRATCH_H

#include "cli/faults.h"
#include "cli/site.h"

void qk_scratch_check(const struct qk_site *s, const struct qk_taskgraph *g, struct qk_faults *f);

#endif
