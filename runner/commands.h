/*
 * Running the commands of a workspace task: one after the other, or all at once; their output goes
 * through a relay. Signals that this process is sent alone are passed on to them.
 */
#ifndef QK_RUNNER_COMMANDS_H
#define QK_RUNNER_COMMANDS_H

#include "base/err.h"
#include "base/vec.h"
#include "keying/taskspec.h"
#include "runner/relay.h"

#include <stdbool.h>
#include <sys/types.h>

struct qk_commands {
	const struct qk_taskspec *spec;
	const struct qk_strv *env;
	struct qk_relay *relay; /* without channels: commands have our own stdout and stderr */
	/*
	 * Runs command number i in the calling process, a child of its own, and does not return.
	 * NULL: sh runs it.
	 */
	void (*held)(void *arg, size_t i) __attribute__((noreturn));
	void *arg;
	/*
	 * The commands go on until they are told to end or the process whose pid this is is gone:
	 * they are process groups of their own, read nothing, and are ended for good. 0: no.
	 */
	pid_t until;
	void (*started)(void *arg); /* all commands run; NULL: nobody asks */
	void *started_arg;
	/* set by _run */
	int status;       /* as from waitpid(2): of the first that failed, else 0 */
	bool interrupted; /* we were sent a signal that ends */
	bool left;        /* something they started still holds their output open */
};

/* Negative only if a command could not be started at all. */
int qk_commands_run(struct qk_commands *c, struct qk_err *err);

#endif
