#include "gmk-plugin/plugin.h"

#include "base/fdio.h"
#include "base/path.h"
#include "gmk-plugin/functions.h"
#include "gmk-plugin/gmkx.h"
#include "gmk-plugin/summary.h"
#include "keying/store.h"
#include "report/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { ENVIRON_MAX = 16 << 20 };

#define MAKE_HOOK "$(qk-make )"

#define EXPORT __attribute__((visibility("default")))

EXPORT extern int plugin_is_GPL_compatible;
int plugin_is_GPL_compatible;
EXPORT int qk_gmk_setup(void);
EXPORT void qk_gmk_unload(void);

struct qk_plugin qk_plugin = { .lock_fd = -1, .requests_fd = -1 };

/* "A:B" in decimal, as QK_PARENT has it. */
static void read_parent(void)
{
	const char *v = getenv("QK_PARENT");
	unsigned long long pid, offset;

	if (v && sscanf(v, "%llu:%llu", &pid, &offset) == 2) {
		qk_plugin.parent_pid = pid;
		qk_plugin.parent_offset = offset;
	}
}

/* QK_RUN is "PID DIRECTORY", PID that of the top make. NULL if this make is in no run yet. */
static const char *run_from_environment(bool *ret_own)
{
	const char *v = getenv("QK_RUN");
	char *dir;
	long pid;

	if (!v)
		return NULL;
	pid = strtol(v, &dir, 10);
	if (pid <= 0 || *dir++ != ' ' || access(dir, F_OK))
		return NULL;
	*ret_own = pid == getpid();
	return dir;
}

char *qk_plugin_run_value(void)
{
	qk_plugin_start();
	return qk_plugin.top ? qk_asprintf("%d %s", (int)getpid(), qk_plugin.session.run)
			     : qk_strdup(getenv("QK_RUN"));
}

static void open_requests(void)
{
	qk_autofree char *path =
		qk_asprintf("%s/requests.%d", qk_plugin.session.run, (int)getpid());
	off_t end;

	qk_plugin.requests_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	end = qk_plugin.requests_fd < 0 ? -1 : lseek(qk_plugin.requests_fd, 0, SEEK_END);
	if (end < 0)
		qk_gmkx_fatal("qk: create '%s': %s", path, strerror(errno));
	qk_plugin.requests_len = (uint64_t)end;
}

/* Chooses what the run has from what there is and what the knobs say. */
static int choose(struct qk_session *s, struct qk_err *err)
{
	/* PREFIX/libexec/qk/sh -> PREFIX/lib/qk/fastlane.so */
	qk_autofree char *library = qk_path_join(qk_plugin.runner, "../../../lib/qk/fastlane.so");
	qk_autofree char *helper = qk_path_join(qk_plugin.runner, "../ebpf");

	return qk_session_choose(s, qk_plugin.knobs.recorder,
		qk_plugin.knobs.no_fastlane ? NULL : library, helper, qk_plugin.knobs.no_overlay, err);
}

/* What this make was started with: whatever else recipes find in theirs, makefiles have put there. */
static int leave_environment(const char *run, struct qk_err *err)
{
	qk_autofree char *path = qk_asprintf("%s/environ", run);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	if (qk_read_file(AT_FDCWD, "/proc/self/environ", ENVIRON_MAX, &b, err))
		return qk_wrap(err, "environment");
	return qk_write_file(path, b.s, b.len, 0666, err);
}

static int start_new_run(struct qk_err *err)
{
	struct qk_session *s = &qk_plugin.session;
	qk_autofree char *cwd = getcwd(NULL, 0);
	int ret;

	if (!cwd)
		return qk_fail(err, errno, "current directory");
	*s = (struct qk_session){ .mode = qk_plugin.knobs.mode,
		.caching = qk_plugin.knobs.caching,
		.system_reads = qk_plugin.knobs.system_reads,
		.cache_limit = qk_plugin.knobs.cache_limit };
	s->cwd = qk_strdup(cwd);
	ret = qk_rundir_root(qk_plugin.knobs.root, cwd, &s->root, err);
	if (ret)
		return ret;
	s->state = qk_path_join(s->root, ".qk");
	s->makefile = qk_gmkx_expand("$(firstword $(MAKEFILE_LIST))");
	s->cache_dir = qk_store_dir(s->root, qk_plugin.knobs.cache_dir, NULL);
	ret = qk_rundir_create(s->state, &s->run, &qk_plugin.lock_fd, err);
	if (!ret)
		ret = choose(s, err);
	if (!ret)
		ret = qk_session_save(s, err);
	if (!ret && s->caching)
		ret = leave_environment(s->run, err);
	if (ret && s->run)
		qk_rundir_remove(s->run);
	return ret;
}

void qk_plugin_start(void)
{
	struct qk_err err = QK_ERR_INIT;
	const char *run;
	bool own = false;
	int ret;

	if (qk_plugin.started)
		return;
	run = run_from_environment(&own);
	if (run) {
		ret = qk_session_load(&qk_plugin.session, run, &err);
		if (!ret && own)
			ret = qk_rundir_reopen(run, &qk_plugin.lock_fd, &err);
		if (!ret && qk_plugin.session.mode != qk_plugin.knobs.mode) {
			qk_plugin.session.mode = qk_plugin.knobs.mode;
			ret = choose(&qk_plugin.session, &err);
		}
		qk_plugin.top = own;
	} else {
		qk_plugin.top = true;
		ret = start_new_run(&err);
	}
	if (ret)
		qk_gmkx_fatal("qk: %s", err.msg);
	open_requests();
	/* what a killed runner leaves running comes to us, so that the summary can end it */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	qk_plugin.started = true;
	if (qk_plugin.top && !own) { /* for ourselves, should make execute itself anew */
		qk_autofree char *value = qk_plugin_run_value();

		setenv("QK_RUN", value, 1);
	}
}

void qk_plugin_hold(struct qk_request *r)
{
	struct qk_session *h = &qk_plugin.held;
	struct qk_err err = QK_ERR_INIT;

	if (!h->run) {
		*h = (struct qk_session){ .mode = QK_MODE_ENFORCE,
			.caching = qk_plugin.session.caching,
			.root = qk_plugin.session.root,
			.state = qk_plugin.session.state,
			.cwd = qk_plugin.session.cwd,
			.run = qk_plugin.session.run };
		if (choose(h, &err))
			qk_gmkx_fatal("qk: %s", err.msg);
	}
	r->mode = QK_MODE_ENFORCE;
	r->recorder = h->recorder;
	r->backend = h->backend;
	r->fastlane = h->fastlane && *h->fastlane ? h->fastlane : NULL;
}

/* Declarations that nobody made are empty, so that --warn-undefined-variables stays quiet. */
static void define_if_unset(const char *name)
{
	qk_gmkx_eval("ifeq ($(origin %s),undefined)\n%s :=\nendif", name, name);
}

/* Sub-makes are to have the knobs too, whoever set them. */
static void export_if_set(const char *name)
{
	qk_gmkx_eval("ifneq ($(origin %s),undefined)\nexport %s := $(%s)\nendif", name, name, name);
}

/*
 * Lines that run $(MAKE) are told by what MAKE expands to. A makefile or a command line that has set
 * it keeps its value, once all makefiles are read; qk.make is the program it names.
 */
static void hook_make(bool parsed)
{
	qk_autofree char *value = qk_gmkx_expand("$(value MAKE)");
	qk_autofree char *origin = qk_gmkx_expand("$(origin MAKE)");

	if (!strncmp(value, MAKE_HOOK, strlen(MAKE_HOOK)))
		return;
	if (!strcmp(origin, "default")) {
		qk_gmkx_eval("MAKE = " MAKE_HOOK "$(MAKE_COMMAND)");
	} else {
		qk_gmkx_eval("qk.make := $(firstword $(MAKE))");
		if (parsed)
			qk_gmkx_eval("qk.make.text := $(MAKE)\n"
				     "override MAKE = " MAKE_HOOK "$(qk.make.text)");
	}
}

void qk_plugin_activate(void)
{
	struct qk_plugin *p = &qk_plugin;

	for (size_t l = 0; l < QK_N_LISTS; l++)
		if (qk_list_variables[l] && qk_list_variables[l][0] == 'Q')
			define_if_unset(qk_list_variables[l]);
	define_if_unset("QK_SANDBOX");
	qk_gmkx_eval("qk.make := $(MAKE_COMMAND)");
	if (p->knobs.wrap) {
		qk_autofree char *shell = qk_gmkx_expand("$(SHELL)");

		if (strcmp(shell, p->runner)) {
			free(p->user_shell);
			p->user_shell = qk_steal(&shell);
		}
		/* overriding can wait until the Makefile has said what it wants */
		qk_gmkx_eval("%sSHELL := %s", p->parsed ? "override " : "", p->runner);
		setenv("QK_SHELL", p->user_shell, 1); /* 4.3 gives $(shell) our own environment */
		qk_gmkx_eval("export QK_SHELL := %s", p->user_shell);
		hook_make(p->parsed);
	}
	/* what another make has left in the environment is not ours, not even under make -e */
	qk_gmkx_eval("override export QK_REQ = $(qk-req )\noverride export QK_RUN = $(qk-run )");
	if (!p->makefiles || !strstr(p->makefiles, p->mk))
		qk_gmkx_eval("override export MAKEFILES := %s%s%s", p->mk, p->makefiles ? " " : "",
			p->makefiles ? p->makefiles : "");
	export_if_set("SANDBOX");
	if (p->knobs.caching) {
		export_if_set("CACHE");
		export_if_set("RECORD");
		export_if_set("QK_RECORD");
	}
	define_if_unset("CACHE");
	define_if_unset("QK_STRICT");
	qk_summary_register();
	p->active = true;
}

void qk_plugin_give_back(void)
{
	qk_gmkx_eval("ifeq ($(SHELL),%s)\nSHELL := %s\nendif\noverride undefine QK_REQ\noverride undefine QK_RUN\nundefine QK_SHELL",
		qk_plugin.runner, qk_plugin.user_shell);
	unsetenv("QK_SHELL");
	qk_plugin.active = false;
}

/*
 * Whether this make runs within a recipe of another one under qk, whose task it is part of: QK_TASK is
 * MAKE'S PID:OFFSET. A daemon that a recipe started keeps the variable when that make is long gone.
 */
static bool within_task(void)
{
	const char *task = getenv("QK_TASK");
	unsigned long long offset;
	int pid;

	if (!task || sscanf(task, "%d:%llu", &pid, &offset) != 2 || pid <= 0)
		return false;
	return !kill(pid, 0) || errno != ESRCH;
}

int qk_gmk_setup(void)
{
	const char *makefiles = getenv("MAKEFILES");

	qk_plugin.inert = within_task();
	qk_plugin.makefiles = makefiles ? qk_strdup(makefiles) : NULL;
	qk_plugin.user_shell = qk_strdup("/bin/sh");
	read_parent();
	qk_functions_register();
	return -1; /* loaded, and not to be remade as a makefile would be */
}

void qk_gmk_unload(void)
{
}
