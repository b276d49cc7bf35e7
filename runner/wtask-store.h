/* What the store has of a workspace's task, and what it is given. */
#ifndef QK_RUNNER_WTASK_STORE_H
#define QK_RUNNER_WTASK_STORE_H

#include "runner/wtask.h"

/* Leaves t->store NULL if there is nothing to look up or to store. */
void qk_wtask_open_store(struct qk_wtask *t);

/*
 * True if the result was there, by a recording or by the key, and is in place now, with its output
 * shown and its status left.
 */
bool qk_wtask_restore(struct qk_wtask *t);

/* QK_EXPLAIN: it runs; what differs first from its last result. */
void qk_wtask_explain(struct qk_wtask *t);

/* The commands ended well: what they made is counted, and stored if nothing speaks against it. */
void qk_wtask_keep(struct qk_wtask *t);

#endif
