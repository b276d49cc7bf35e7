/*
 * The processes that descend from this one, which must be a child subreaper: what a command
 * started and left running.
 */
#ifndef QK_SANDBOX_PROCESSES_H
#define QK_SANDBOX_PROCESSES_H

#include "base/vec.h"

#include <sys/types.h>

struct qk_pids {
	pid_t *v;
	size_t n, cap;
};

/* Appends the living descendants of this process (zombies left out), except `except` (0: none). */
void qk_processes_below(struct qk_pids *ret, pid_t except);

/* "sleep 1000 (pid 123)"; the caller frees. */
char *qk_process_describe(pid_t pid);

#endif
