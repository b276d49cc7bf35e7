/*
 * Deciding about one task in make's thread, from stat calls and what is remembered: up to date, or
 * for its runner to find out. A digest that is missing is never computed here.
 */
#ifndef QK_GMK_PLUGIN_TASKS_DECIDE_H
#define QK_GMK_PLUGIN_TASKS_DECIDE_H

#include "gmk-plugin/tasks/model.h"

/* Sets decision, key and reasons. Prerequisites have been made by then. */
void qk_decide(struct qk_ruletask *t);

/*
 * The key of a task that has been made or decided about, as far as this make can tell. False: not
 * known, and t->unkeyed says why if it never will be.
 */
bool qk_decide_key(struct qk_ruletask *t);

/*
 * The key as things are now, whatever has to be read or run for it; nothing is decided. -EINVAL if
 * it has none, with the reason.
 */
int qk_decide_now(struct qk_ruletask *t, struct qk_digest *ret, struct qk_err *err);

/*
 * At the end of make: files that runners made are too fresh for their digests to be believed later.
 * Once they are older than a tick, those that are not large are counted again and remembered, so
 * that the next make need start no process for them.
 */
void qk_decide_settle(void);

#endif
