/*
 * What the documented interface cannot tell: which targets one recipe makes together, and the
 * prerequisites of targets whose recipes are not being expanded. Read from make's own table of
 * files through its exported lookup_file, whose head is laid out alike from 4.2.1 to 4.4.1.
 *
 * The first use checks the layout against what $@ and $^ say, through reads that cannot fault;
 * where it does not fit, nothing is known: siblings count as other files, and the order of recipes
 * is judged by the requests alone.
 */
#ifndef QK_GMK_PLUGIN_DEEP_H
#define QK_GMK_PLUGIN_DEEP_H

#include "report/graph.h"

#include <stdbool.h>

/* Calls each for every target that the target's recipe makes, itself perhaps included. */
void qk_deep_siblings(const char *target, void (*each)(const char *target, void *arg), void *arg);

/* Calls each for every prerequisite of the target, order-only ones too: names that hold blanks are whole. */
void qk_deep_prerequisites(
	const char *target, void (*each)(const char *name, void *arg), void *arg);

/* True if target is a prerequisite of .PHONY. */
bool qk_deep_is_phony(const char *target);

/* Adds to g, for make_pid, the prerequisites reachable from target, as make has them now. */
void qk_deep_graph(struct qk_graph *g, uint64_t make_pid, const char *target);

#endif
