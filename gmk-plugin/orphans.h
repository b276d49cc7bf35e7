/*
 * What is left of recipes whose runner was killed. make is a subreaper while recipes are tasks, so
 * such processes become its children; those that a runner let live on purpose (audit) are spared.
 */
#ifndef QK_GMK_PLUGIN_ORPHANS_H
#define QK_GMK_PLUGIN_ORPHANS_H

/* Kills this process's children that belong to a task without a result in the run's log. */
void qk_orphans_end(const char *run);

#endif
