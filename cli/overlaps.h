/*
 * Outputs that two tasks declare both: whoever is restored or runs last has its way with them.
 */
#ifndef QK_CLI_OVERLAPS_H
#define QK_CLI_OVERLAPS_H

#include "cli/faults.h"
#include "keying/taskgraph.h"

/*
 * Adds a line for every pair of tasks whose declared outputs overlap for certain: equal globs, and
 * names that the other's globs match. Two different globs that could meet are not complained of,
 * nor outputs that are only presumed.
 */
void qk_overlaps_check(const struct qk_taskgraph *g, struct qk_faults *f);

#endif
