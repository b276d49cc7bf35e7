/*
 * Restoring in make's own process: where the key is known and what is stored under it is small, a
 * process for it would be about four times the work. What is large, sandboxed, recorded or in any doubt is
 * left to the task's runner, which does the same and more.
 */
#ifndef QK_GMK_PLUGIN_TASKS_PUTBACK_H
#define QK_GMK_PLUGIN_TASKS_PUTBACK_H

#include "gmk-plugin/tasks/model.h"

/*
 * A task that was decided to run. True: its outputs stand there as stored, its state is left for
 * others, what it printed was printed after `shown`, its commands as make would show them.
 */
bool qk_putback(struct qk_ruletask *t, const char *shown);

#endif
