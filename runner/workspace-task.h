/*
 * One task of a workspace: its key, and from the store what was made under it; else its commands are
 * run, and what they made is stored. Everything a user sees is what the commands print, or printed
 * when the result was made.
 *
 * Nothing of the cache ever fails a task: what cannot be counted, looked up or stored makes it
 * uncached, with the reason for the summary.
 */
#ifndef QK_RUNNER_WORKSPACE_TASK_H
#define QK_RUNNER_WORKSPACE_TASK_H

#include "keying/request.h"

/* Runs the task of the request and does not return: the process ends as the commands ended. */
void qk_workspace_task_run(const struct qk_request *r, const char *self) __attribute__((noreturn));

#endif
