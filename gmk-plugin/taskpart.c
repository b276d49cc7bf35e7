#include "gmk-plugin/taskpart.h"

#include "base/path.h"
#include "gmk-plugin/gmkx.h"
#include "gmk-plugin/plugin.h"
#include "gmk-plugin/recipe.h"
#include "gmk-plugin/summary.h"
#include "report/rundir.h"

#include <dlfcn.h>
#include <string.h>

const struct qk_taskpart *qk_taskpart;

static const struct qk_session *start(void)
{
	qk_plugin_start();
	return &qk_plugin.session;
}

static struct qk_taskhost host = {
	.start = start,
	.request = qk_recipe_task_request,
	.pretending = qk_recipe_pretending,
};

static bool has(const char *root, const char *name)
{
	qk_autofree char *path = qk_path_join(root, name);

	return !access(path, F_OK);
}

void qk_taskpart_load(const char *home)
{
	qk_autofree char *cwd = getcwd(NULL, 0), *file = NULL, *goal = NULL;
	struct qk_err err = QK_ERR_INIT;
	char *root;
	void *so;

	if (!cwd)
		return;
	if (qk_rundir_root(qk_plugin.knobs.root, cwd, &root, &err))
		qk_gmkx_fatal("qk: %s", err.msg);
	if (strcmp(root, cwd) || !has(root, "nx.json")) {
		free(root);
		return;
	}
	file = qk_asprintf("%slib/qk/qk-workspace.so", home);
	so = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	qk_taskpart = so ? dlsym(so, "qk_taskpart_of_workspace") : NULL;
	if (!qk_taskpart)
		qk_gmkx_fatal("qk: nx.json is here, and what reads it cannot be loaded: %s", dlerror());
	host.root = root;
	host.state = qk_path_join(root, ".qk");
	host.runner = qk_plugin.runner;
	host.knobs = &qk_plugin.knobs;
	/* the first rule of the Makefile itself stays the default goal */
	goal = qk_gmkx_expand("$(.DEFAULT_GOAL)");
	qk_taskpart->load(&host);
	qk_gmkx_eval(".DEFAULT_GOAL := %s", goal);
	qk_summary_register();
}
