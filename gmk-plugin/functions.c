#include "gmk-plugin/functions.h"

#include "base/buf.h"
#include "gmk-plugin/ask.h"
#include "gmk-plugin/gmkx.h"
#include "gmk-plugin/keys.h"
#include "gmk-plugin/plugin.h"
#include "gmk-plugin/recipe.h"
#include "gmk-plugin/taskpart.h"

#include <string.h>

/* $(qk-setup MK,RUNNER): called by qk.mk as it is read; takes recipes early if a knob is set. */
static char *fn_setup(const char *name, unsigned int argc, char **argv)
{
	qk_autofree char *home = NULL;

	(void)name;
	(void)argc;
	free(qk_plugin.mk);
	free(qk_plugin.runner);
	qk_plugin.mk = qk_strdup(argv[0]);
	qk_plugin.runner = qk_strdup(argv[1]);
	if (qk_plugin.inert)
		return NULL;
	qk_knobs_release(&qk_plugin.knobs);
	qk_knobs_read(&qk_plugin.knobs);
	if (qk_knobs_handle(&qk_plugin.knobs))
		qk_plugin_activate();
	home = qk_strndup(argv[1], strlen(argv[1]) - strlen("libexec/qk/sh"));
	qk_taskpart_load(home);
	qk_ask_begin(home);
	return NULL;
}

/* $(qk-after-parse ): the Makefile has said all it wants. */
static char *fn_after_parse(const char *name, unsigned int argc, char **argv)
{
	(void)name;
	(void)argc;
	(void)argv;
	if (qk_plugin.inert || qk_plugin.parsed)
		return NULL;
	qk_plugin.parsed = true;
	qk_knobs_release(&qk_plugin.knobs);
	qk_knobs_read(&qk_plugin.knobs);
	if (qk_plugin.active && (!qk_knobs_handle(&qk_plugin.knobs) || !qk_plugin.knobs.wrap))
		qk_plugin_give_back(); /* the Makefile said so after qk.mk had read the knobs */
	if (qk_knobs_handle(&qk_plugin.knobs))
		qk_plugin_activate();
	return NULL;
}

static char *fn_req(const char *name, unsigned int argc, char **argv)
{
	qk_autofree char *value = qk_recipe_request();

	(void)name;
	(void)argc;
	(void)argv;
	return qk_gmkx_result(value);
}

static char *fn_run(const char *name, unsigned int argc, char **argv)
{
	qk_autofree char *value = qk_recipe_runs() ? qk_plugin_run_value() : NULL;

	(void)name;
	(void)argc;
	(void)argv;
	return qk_gmkx_result(value);
}

static char *fn_make(const char *name, unsigned int argc, char **argv)
{
	(void)name;
	(void)argc;
	(void)argv;
	qk_recipe_uses_make();
	return NULL;
}

/*
 * $(qk-sandbox COMMAND): under QK_WRAP=no the command goes through the runner; elsewhere its line
 * is a task already, or nothing is, and the command stands for itself.
 */
static char *fn_sandbox(const char *name, unsigned int argc, char **argv)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	(void)name;
	(void)argc;
	if (!qk_plugin.active || qk_plugin.knobs.wrap)
		return qk_gmkx_result(argv[0]);
	qk_buf_addf(&b, "%s -c '", qk_plugin.runner);
	for (const char *s = argv[0]; *s; s++)
		if (*s == '\'')
			qk_buf_addstr(&b, "'\\''");
		else
			qk_buf_addch(&b, *s);
	qk_buf_addch(&b, '\'');
	return qk_gmkx_result(b.s);
}

/* $(qk-task N): the recipe of a rule made for a workspace task. */
static char *fn_task(const char *name, unsigned int argc, char **argv)
{
	qk_autofree char *text = qk_taskpart ? qk_taskpart->recipe(strtoul(argv[0], NULL, 10)) : NULL;

	(void)name;
	(void)argc;
	return qk_gmkx_result(text);
}

/* $(qk-task-flags ): .SHELLFLAGS of such rules. */
static char *fn_task_flags(const char *name, unsigned int argc, char **argv)
{
	qk_autofree char *target = qk_gmkx_expand("$@");
	qk_autofree char *flags = qk_taskpart ? qk_taskpart->flags(target) : NULL;

	(void)name;
	(void)argc;
	(void)argv;
	return qk_gmkx_result(flags ? flags : "-c");
}

static char *fn_key(const char *name, unsigned int argc, char **argv)
{
	qk_autofree char *key = qk_keys_of(argv[0]);

	(void)name;
	(void)argc;
	return qk_gmkx_result(key);
}

void qk_functions_register(void)
{
	qk_gmkx_function("qk-setup", fn_setup, 2, 2);
	qk_gmkx_function("qk-after-parse", fn_after_parse, 0, 1);
	qk_gmkx_function("qk-req", fn_req, 0, 1);
	qk_gmkx_function("qk-run", fn_run, 0, 1);
	qk_gmkx_function("qk-make", fn_make, 0, 1);
	qk_gmkx_function("qk-sandbox", fn_sandbox, 1, 1);
	qk_gmkx_function("qk-key", fn_key, 1, 1);
	qk_gmkx_function("qk-task", fn_task, 1, 1);
	qk_gmkx_function("qk-task-flags", fn_task_flags, 0, 1);
}
