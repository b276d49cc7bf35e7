/*
 * The record of a task for its runner (keying/taskspec.h), from what the model says.
 */
#ifndef QK_GMK_PLUGIN_TASKS_SPEC_H
#define QK_GMK_PLUGIN_TASKS_SPEC_H

#include "gmk-plugin/tasks/model.h"
#include "keying/taskspec.h"

/* Fills s, zeroed by the caller, for a task that was decided about. Strings live with the model. */
void qk_spec_fill(struct qk_taskspec *s, struct qk_ruletask *t);

/* Writes the paths of file groups of s that no earlier request of this run named to the run's file. */
void qk_spec_write_groups(struct qk_taskspec *s, const char *run);

/* Where results are stored, and how much of them; allocated. */
char *qk_spec_store(uint64_t *ret_limit);

#endif
