#include "gmk-plugin/ask.h"

#include "base/path.h"
#include "gmk-plugin/deep.h"
#include "gmk-plugin/gmkx.h"
#include "gmk-plugin/plugin.h"
#include "gmk-plugin/taskpart.h"
#include "report/rundir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The make that asks, for those that its makefiles start by $(shell ...). */
static const char asking[] = "QK_ASKING";

char *qk_ask_target(void)
{
	const char *pid = getenv(asking);
	char *v;

	if (pid && strtol(pid, NULL, 10) != getpid())
		return NULL;
	v = qk_gmkx_expand("$(if $(filter-out undefined,$(origin QK_WHY)),$(strip $(QK_WHY)))");
	if (*v)
		return v;
	free(v);
	return NULL;
}

static const char *plain(const char *name)
{
	while (!strncmp(name, "./", 2))
		name += 2;
	return name;
}

bool qk_ask_is(const char *target)
{
	return !strcmp(plain(target), plain(qk_plugin.knobs.why));
}

static void __attribute__((noreturn)) answer(const char *text)
{
	printf("%s%s\n", text, qk_plugin.knobs.why);
	_exit(fflush(stdout) ? 2 : 0);
}

static bool nothing_stored(void)
{
	qk_autofree char *cwd = getcwd(NULL, 0), *root = NULL, *digests = NULL;
	struct qk_err err = QK_ERR_INIT;

	if (!cwd || qk_rundir_root(qk_plugin.knobs.root, cwd, &root, &err))
		qk_gmkx_fatal("qk: %s", cwd ? err.msg : strerror(errno));
	digests = qk_path_join(root, ".qk/digests");
	return access(digests, F_OK);
}

void qk_ask_begin(const char *home)
{
	qk_autofree char *qk = qk_asprintf("%sbin/qk", home), *pid = qk_asprintf("%d", (int)getpid());
	const char *why = qk_plugin.knobs.why;

	if (!why)
		return;
	if (strpbrk(why, " \t\n"))
		qk_gmkx_fatal("qk: QK_WHY=%s: more than one target", why);
	if (qk_taskpart && qk_taskpart->has(why)) {
		execl(qk, "qk", "why", why, (char *)NULL);
		qk_gmkx_fatal("qk: start '%s': %s", qk, strerror(errno));
	}
	if (nothing_stored())
		answer("nothing is stored for ");
	setenv(asking, pid, 1);
	qk_gmkx_eval("MAKEFLAGS += -B -s");
}

static bool refused;

void qk_ask_refuse(const char *target, const char *shell)
{
	refused = true;
	qk_gmkx_fatal("qk: %s: SHELL is set for this target ('%s'): asking would run it", target, shell);
}

void qk_ask_end(void)
{
	const char *why = qk_plugin.knobs.why;
	bool met = refused;

	for (size_t i = 0; i < qk_plugin.targets.n; i++)
		met |= qk_ask_is(qk_plugin.targets.v[i]);
	if (qk_deep_is_phony(plain(why))) {
		printf("%s: it is phony, so that nothing of it is stored\n", why);
	} else if (met) {
		qk_autofree char *answered = qk_path_join(qk_plugin.session.run, "answered");

		if (access(answered, F_OK) && !refused)
			printf("%s: nothing differs from its stored result\n", why);
	} else {
		printf("%s: make came to no recipe of it\n", why);
	}
	fflush(stdout);
	if (qk_plugin.started)
		qk_rundir_remove(qk_plugin.session.run);
}
