/*
 * Keepers: processes that run continuous tasks until nobody needs them. Each holds a lock on its
 * file keeper.N of the run directory (N: the task's number in its make) with its process id in it;
 * tasks that need it leave one byte each in needed.N when they have ended.
 */
#ifndef QK_REPORT_KEEPERS_H
#define QK_REPORT_KEEPERS_H

#include "base/err.h"

#include <stddef.h>

/* Makes this process the keeper of task n: a locked descriptor, kept open until it ends, or -errno. */
int qk_keeper_begin(const char *run, size_t n);

/*
 * One that needed it has ended. When total have, it is told to end; total 0: how many there will be
 * is not known, and it goes on until the end of make.
 */
void qk_keeper_let_go(const char *run, size_t n, size_t total);

/* Tells all that are left to end, and waits until they have. */
void qk_keepers_end(const char *run);

#endif
