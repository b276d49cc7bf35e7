/*
 * What a task runs: the options of its executor as commands (W4).
 *
 *   nx:run-commands  command, commands, args, cwd, env, envFile, parallel, readyWhen, forwardAllArgs;
 *                    options of other names are arguments, {args.x} and {args} in a command take them
 *   nx:run-script    a script of the project's package.json, with its pre and post scripts
 *   nx:noop          nothing
 *
 * Colours, prefixes and what concerns Nx's own terminal are passed over.
 */
#ifndef QK_GMK_PLUGIN_TASKS_COMMANDS_H
#define QK_GMK_PLUGIN_TASKS_COMMANDS_H

#include "base/buf.h"
#include "keying/taskgraph.h"
#include "keying/taskspec.h"

/* Fills in what is run: commands and how, env, cwd, problem. Strings go to s->arena or live on. */
void qk_commands_read(struct qk_taskspec *s, const struct qk_task *t, const char *root,
	const char *args);

/* Appends the commands as one line that make shows: what somebody would type at the root. */
void qk_commands_show(struct qk_buf *out, const struct qk_taskspec *s, const char *root);

#endif
