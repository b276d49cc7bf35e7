/*
 * One recipe line as a task: request -> policy -> run under the recorder and the walls -> settle
 * -> result. Everything a user sees of a task is the command's own output and status; findings
 * wait for the summary.
 */
#ifndef QK_RUNNER_TASK_H
#define QK_RUNNER_TASK_H

#include "base/err.h"
#include "keying/request.h"

enum { QK_TASK_FAILED = 125 }; /* exit status of the runner when qk itself failed a line */

/*
 * Runs the line in argv_in (this program's arguments) for the request and does not return: the
 * process ends as the command ended.
 */
void qk_task_run(const struct qk_request *r, char *const *argv_in, const char *self)
	__attribute__((noreturn));

/* Ends this process as a wait status says that a command ended. */
void qk_task_end_as(int status) __attribute__((noreturn));

/* Becomes the command, with no sandbox and no record. */
void qk_task_exec(char *const *argv, char *const *envp, const char *make)
	__attribute__((noreturn));

#endif
