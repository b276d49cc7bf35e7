/*
 * The present recipe, seen through its automatic variables, as a request.
 */
#ifndef QK_GMK_PLUGIN_RECIPE_H
#define QK_GMK_PLUGIN_RECIPE_H

#include "keying/request.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes the request of the recipe in whose context make expands, and returns the QK_REQ value for
 * its environment (allocated); NULL where there is no recipe, or none that really runs.
 */
char *qk_recipe_request(void);

/* Writes the request of a workspace task: its record is the n bytes at task (taskpart.h). Allocated. */
char *qk_recipe_task_request(const char *target, const char *project, const char *task, size_t n,
	const struct qk_request *grants);

/* True where make only pretends: -n, -q, -t. */
bool qk_recipe_pretending(void);

/* True where make expands for a recipe that really runs: not at parse time, not under -n, -q, -t. */
bool qk_recipe_runs(void);

/* Remembers that the recipe being expanded uses $(MAKE). */
void qk_recipe_uses_make(void);

#endif
