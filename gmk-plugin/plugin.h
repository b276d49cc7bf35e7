/*
 * The part of qk inside make: what this make process knows of itself and of the run it is in.
 *
 * A make is the *top* make (it made the run directory and prints the summary), a sub-make (a
 * $(MAKE) line of a recipe started it: QK_RUN and QK_PARENT say so), or *inert*: a recipe started
 * it by other means, so that it belongs to that recipe's task.
 *
 * Everything here runs in make's only thread: nothing hashes, waits or walks trees, but for the
 * probing of recorder and back end, once, when the first recipe of the run starts, for the start of
 * the proxy, once, when the first task needs it, and for the restoring of what is small
 * (tasks/putback.h): at most 64 files and 1 MiB, read, hashed and written, because a process for
 * each would be about four times the work.
 */
#ifndef QK_GMK_PLUGIN_PLUGIN_H
#define QK_GMK_PLUGIN_PLUGIN_H

#include "gmk-plugin/knobs.h"
#include "report/graph.h"
#include "report/session.h"

#include <stdbool.h>

struct qk_plugin {
	bool inert;
	bool active; /* SHELL is ours: recipes are tasks */
	bool parsed; /* all makefiles are read */
	struct qk_knobs knobs;
	char *mk, *runner; /* absolute: qk.mk, libexec/qk/sh */
	char *user_shell;  /* what the Makefile has as SHELL */
	char *makefiles;   /* MAKEFILES as make found it; NULL = unset */
	uint64_t parent_pid, parent_offset;

	/* from the first recipe on */
	bool started, top;
	struct qk_session session;
	struct qk_session held; /* as if SANDBOX=enforce had been said; .run NULL: not asked for yet */
	int lock_fd, requests_fd;
	uint64_t requests_len;
	struct qk_strv targets; /* those with a request: the graph starts from them */
};

extern struct qk_plugin qk_plugin;

/* Puts the runner in the recipes' way (again): SHELL, QK_REQ and what they need. */
void qk_plugin_activate(void);

/* What QK_RUN says to the makes that recipes start; allocated. Starts the run. */
char *qk_plugin_run_value(void);

/* Undoes what activating put in the recipes' way. */
void qk_plugin_give_back(void);

/*
 * For a task that is held to its grants in a run that holds no other: its mode, and what the host
 * gives for it, tried when the first such task comes.
 */
void qk_plugin_hold(struct qk_request *r);

/* Makes or joins the run. Ends make with a line if that cannot be. */
void qk_plugin_start(void);

#endif
